"""Performing operations: which API version to speak, what to repeat, what an answer means."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import aiohttp

from slurmclient.api.operation import Operation, Value, parser
from slurmclient.api.operations import OPERATIONS
from slurmclient.calls import answers
from slurmclient.calls.dialect import Dialect, _Paths, _Ping
from slurmclient.errors import LostReply, Malformed, SlurmError, TooOld, Unavailable
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import OK, Transport

VERSIONS: Final = (45, 44, 43, 42)
"""The data parsers we speak, newest first: those of Slurm 26.05, 25.11, 25.05 and 24.11."""


NOT_MODIFIED: Final = 304


_FIRST_DELAY_S: Final = 0.2
"""Before the second try; it doubles."""


OnCall: TypeAlias = Callable[[str, float, str], None]
"""Hears of every call: operation, seconds, and `ok`, an error's `outcome`, or `cancelled`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """An operation with its arguments, in no version yet."""

    operation: Operation
    path: Mapping[str, str | int]
    query: Mapping[str, Value]
    body: bytes | None
    user: str

    def request(self, dialect: Dialect) -> Request:
        """Write it for what the server speaks; raises TooOld as `Operation.target` does."""
        target, pairs = self.operation.target(dialect.version, self.path, self.query)
        return Request(
            operation=self.operation.name,
            method=self.operation.method,
            path=target,
            query=pairs,
            content=self.body,
            user=self.user,
        )


class Caller:
    """Performs operations at one cluster.

    Reads are repeated when Slurm cannot answer; an operation that changes something only when it was not sent. Which is
    which stands in the table of operations, not in the HTTP method.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        connections: int,
        attempts: int,
        pinned: int | None,
        on_call: OnCall,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.transport = transport
        self._slots = asyncio.Semaphore(connections)
        self._attempts = attempts
        self._versions = VERSIONS if pinned is None else (pinned,)
        self._on_call = on_call
        self._jitter = jitter
        self._dialect: Dialect | None = None
        self._negotiating = asyncio.Lock()

    async def call(
        self,
        name: str,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
        body: bytes | None = None,
        *,
        user: str = "",
        is_checked: bool = True,
    ) -> bytes:
        """Perform an operation; return the body of an answer that says it was done. Empty: nothing has changed (304).

        Args:
            name: The operation's, as `slurm_get_jobs`.
            path: The parameters of its path.
            query: Those of its query, by their names in the table.
            body: JSON.
            user: As whom, by name or uid; "": as the token's own user.
            is_checked: False: whoever reads the body looks for its `errors` too, as `listing` does.

        Raises:
            SlurmError: what `slurmclient.errors` tells apart.
        """
        wanted = _Wanted(
            operation=OPERATIONS[name], path=path or {}, query=query or {}, body=body, user=user
        )
        async with self._slots:
            with self._observed(name):
                return await self._tried(wanted, is_checked=is_checked)

    @asynccontextmanager
    async def stream(
        self, name: str, query: Mapping[str, Value], *, user: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Perform a read whose answer is read piece by piece; it is not repeated."""
        wanted = _Wanted(operation=OPERATIONS[name], path={}, query=query, body=None, user=user)
        async with self._slots:
            with self._observed(name):
                dialect = await self.dialect()
                for _ in VERSIONS:
                    async with self.transport.open(wanted.request(dialect)) as response:
                        if response.status == OK:
                            yield response
                            return
                        reply = Reply(status=response.status, body=await response.read())
                    if not reply.is_unknown_path:
                        answers.refuse(name, reply)
                    dialect = await self._another(wanted.operation, dialect)

    async def dialect(self) -> Dialect:
        """Say what the server speaks; it is asked until it has answered once.

        Raises:
            TooOld: nothing that we speak.
            Unauthorized: it does not accept our token.
            Unavailable: it did not answer, or made no sense.
        """
        if self._dialect is not None:
            return self._dialect
        async with self._negotiating:
            if self._dialect is None:
                try:
                    self._dialect = await self._negotiate()
                except (LostReply, Malformed) as error:
                    # Whatever became of the ping: what was to be asked has not left us.
                    raise Unavailable(error.operation, error.words, status=error.status) from error
            return self._dialect

    async def _tried(self, wanted: "_Wanted", *, is_checked: bool) -> bytes:
        """Ask, and ask again where that may be done: what changes something only if it was not sent."""
        for number in range(1, self._attempts + 1):
            try:
                return await self._once(wanted, is_checked=is_checked)
            except Unavailable as error:
                is_lost = isinstance(error, LostReply)
                if number == self._attempts or (is_lost and wanted.operation.mutates):
                    raise
                if is_lost:
                    self.transport.avoid_current()
            await asyncio.sleep(_FIRST_DELAY_S * 2 ** (number - 1) * (0.5 + self._jitter()))
        raise AssertionError("the last try returns or raises")

    async def _once(self, wanted: "_Wanted", *, is_checked: bool) -> bytes:
        name = wanted.operation.name
        reply = await self._ask(wanted)
        if reply.status == NOT_MODIFIED:
            return b""
        if reply.status != OK:
            answers.refuse(name, reply)
        if is_checked:
            answers.check(name, reply)
        return reply.body

    @contextmanager
    def _observed(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        outcome = "cancelled"
        try:
            yield
            outcome = "ok"
        except SlurmError as error:
            outcome = error.outcome
            raise
        finally:
            self._on_call(operation, time.perf_counter() - began, outcome)

    async def _ask(self, wanted: "_Wanted") -> Reply:
        dialect = await self.dialect()
        for _ in VERSIONS:
            reply = await self.transport.exchange(wanted.request(dialect))
            if not reply.is_unknown_path:
                return reply
            dialect = await self._another(wanted.operation, dialect)
        raise TooOld(wanted.operation.name, "slurmrestd changes its versions all the time")

    async def _another(self, operation: Operation, spoken: Dialect) -> Dialect:
        """Negotiate anew: another release of slurmrestd may stand there now, with another set of versions.

        Raises:
            TooOld: it is the same set, and has no such path.
        """
        if self._dialect is spoken:
            self._dialect = None
        dialect = await self.dialect()
        if dialect.version == spoken.version:
            where = operation.path.format_map(_Unknown(dialect.version))
            raise TooOld(
                operation.name,
                f"slurmrestd {dialect.release} has no {operation.method} {where}: it may lack the plugin, or a newer"
                " Slurm is needed",
            )
        return dialect

    async def _negotiate(self) -> Dialect:
        for version in self._versions:
            path = f"/slurm/{parser(version)}/ping/"
            reply = await self.transport.exchange(
                Request(operation="slurm_get_ping", method="GET", path=path)
            )
            if not reply.is_unknown_path:
                if reply.status != OK:
                    answers.refuse("slurm_get_ping", reply)
                slurm = answers.parsed("slurm_get_ping", reply, _Ping).meta.slurm
                return Dialect(version=version, release=slurm.release, cluster=slurm.cluster)
        reply = await self.transport.exchange(
            Request(operation="openapi", method="GET", path="/openapi/v3")
        )
        if reply.status != OK:
            answers.refuse("openapi", reply)
        paths = answers.parsed("openapi", reply, _Paths).paths
        offered = {path.split("/")[2] for path in paths if path.startswith("/slurm/v")}
        raise TooOld(
            "slurm_get_ping",
            f"slurmrestd offers {', '.join(sorted(offered)) or 'no Slurm API'}; asked for"
            f" {', '.join(map(parser, self._versions))}",
        )


class _Unknown(dict[str, str]):
    """A path's parameters as they stand in the specification."""

    def __init__(self, version: int) -> None:
        super().__init__(version=parser(version))

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"
