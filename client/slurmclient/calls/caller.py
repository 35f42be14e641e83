"""Performing operations at one cluster: versions, retries, observation."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import aiohttp

from slurmclient.api.operation import VERSIONS, Operation, Value, parser
from slurmclient.api.operations import OPERATIONS
from slurmclient.calls import answers
from slurmclient.calls.dialect import Dialect, negotiate
from slurmclient.errors import LostReply, Malformed, SlurmError, TooOld, Unavailable
from slurmclient.transport.exchange import NOT_MODIFIED, OK, Reply, Request
from slurmclient.transport.failover import Transport

_FIRST_DELAY_S: Final = 0.2
"""The delay before the second attempt; it doubles with each further one, with jitter."""

OnCall: TypeAlias = Callable[[str, float, str], None]
"""Called after every call with the operation, its seconds, and its outcome.

The outcome is `ok`, an error's `outcome` or `cancelled`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """An operation with its arguments, independent of the API version."""

    operation: Operation
    path: Mapping[str, str | int]
    query: Mapping[str, Value]
    body: bytes | None
    user: str

    def request(self, dialect: Dialect) -> Request:
        """Return the request in the server's version; raise like `Operation.target`."""
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

    Reads are retried while Slurm cannot answer. An operation that changes something is retried only
    if its request was not sent. The table of operations says which is which, not the HTTP method.
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
        """Create a caller; nothing is sent.

        Args:
            transport: Sends the requests.
            connections: The maximum number of concurrent calls.
            attempts: The maximum number of attempts for one call.
            pinned: The only API version to speak, 45 for v0.0.45; None to negotiate.
            on_call: Called after every call.
            jitter: Returns a random number in [0, 1) that spreads retries.
        """
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
        """Perform an operation and return the body of its answer.

        Args:
            name: The operation, such as `slurm_get_jobs`.
            path: The parameters of its path.
            query: The parameters of its query, by their names in the table of operations.
            body: The request's JSON.
            user: The user to act as, by name or uid; "" for the token's own.
            is_checked: False if the caller looks for the answer's `errors` itself while decoding,
                as `answers.listing` does.

        Returns:
            JSON; empty if nothing has changed since the query's `update_time` (HTTP 304).

        Raises:
            SlurmError: As `slurmclient.errors` classifies it.
            TypeError: If the operation has no such query parameter.
        """
        wanted = _Wanted(
            operation=OPERATIONS[name], path=path or {}, query=query or {}, body=body, user=user
        )
        async with self._slots:
            with self._observed(name):
                return await self._call_with_retries(wanted, is_checked=is_checked)

    @asynccontextmanager
    async def stream(
        self, name: str, query: Mapping[str, Value], *, user: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Perform a read without retries; the block reads the answer piece by piece.

        Raises:
            SlurmError: As `slurmclient.errors` classifies it.
            TypeError: If the operation has no such query parameter.
        """
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
                    dialect = await self._renegotiate(wanted.operation, dialect)
                raise _unsteady(name)

    async def dialect(self) -> Dialect:
        """Return the API version in use; negotiate it until that has succeeded once.

        Raises:
            TooOld: If slurmrestd speaks no version that we speak.
            Unauthorized: If it does not accept the token.
            Unavailable: If it does not answer, or its answer makes no sense.
        """
        if self._dialect is not None:
            return self._dialect
        async with self._negotiating:
            if self._dialect is None:
                try:
                    self._dialect = await negotiate(self.transport, self._versions)
                except (LostReply, Malformed) as error:
                    # Whatever became of the ping, the actual request has not been sent.
                    raise Unavailable(error.operation, error.words, status=error.status) from error
            return self._dialect

    async def _call_with_retries(self, wanted: _Wanted, *, is_checked: bool) -> bytes:
        for number in range(1, self._attempts + 1):
            try:
                return await self._call_once(wanted, is_checked=is_checked)
            except Unavailable as error:
                is_lost = isinstance(error, LostReply)
                if number == self._attempts or (is_lost and wanted.operation.mutates):
                    raise
            await asyncio.sleep(_FIRST_DELAY_S * 2 ** (number - 1) * (0.5 + self._jitter()))
        raise AssertionError("the last attempt returns or raises")

    async def _call_once(self, wanted: _Wanted, *, is_checked: bool) -> bytes:
        name = wanted.operation.name
        reply = await self._exchange(wanted)
        if reply.status == NOT_MODIFIED:
            return b""
        if reply.status != OK:
            answers.refuse(name, reply)
        if is_checked:
            answers.check(name, reply)
        return reply.body

    async def _exchange(self, wanted: _Wanted) -> Reply:
        dialect = await self.dialect()
        for _ in VERSIONS:
            reply = await self.transport.exchange(wanted.request(dialect))
            if not reply.is_unknown_path:
                return reply
            dialect = await self._renegotiate(wanted.operation, dialect)
        raise _unsteady(wanted.operation.name)

    async def _renegotiate(self, operation: Operation, spoken: Dialect) -> Dialect:
        """Negotiate again after an unknown path: slurmrestd may have been upgraded meanwhile.

        Raises:
            TooOld: If it still speaks the same version, which then has no such path.
        """
        if self._dialect is spoken:
            self._dialect = None
        dialect = await self.dialect()
        if dialect.version == spoken.version:
            where = operation.path.format_map(_Placeholders(dialect.version))
            raise TooOld(
                operation.name,
                f"slurmrestd {dialect.release} has no {operation.method} {where}; load the plugin"
                " that serves it (slurmrestd -s), or use a newer Slurm",
            )
        return dialect

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


class _Placeholders(dict[str, str]):
    """Fills in the version of a path and leaves its other parameters as `{name}`."""

    def __init__(self, version: int) -> None:
        super().__init__(version=parser(version))

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


def _unsteady(operation: str) -> TooOld:
    return TooOld(operation, "slurmrestd offered another version of the API at every attempt")
