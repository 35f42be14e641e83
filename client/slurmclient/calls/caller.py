"""Performing operations at one cluster: versions, retries, observation."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, TypeVar

import aiohttp
from msgspec import Struct, structs

from slurmclient.api.operation import VERSIONS, Operation, Value, parser
from slurmclient.api.operations import OPERATIONS
from slurmclient.calls import answers
from slurmclient.calls.dialect import Dialect, negotiate
from slurmclient.calls.observing import Observe
from slurmclient.errors import LostReply, Malformed, TooOld, Unavailable
from slurmclient.transport.exchange import NOT_MODIFIED, OK, Reply, Request
from slurmclient.transport.failover import Sender
from slurmclient.wire.reading import Answer

T = TypeVar("T")

_FIRST_DELAY_S: Final = 0.2
"""The delay before the second attempt; it doubles with each further one, with jitter."""


class _Invocation(Struct, frozen=True, kw_only=True):
    """An operation with its arguments, independent of the API version."""

    operation: Operation
    path: Mapping[str, str | int]
    query: Mapping[str, Value]
    body: bytes | None
    user: str
    may_repeat: bool

    @property
    def is_conditional(self) -> bool:
        """Whether the answer may be that nothing has changed (HTTP 304)."""
        return self.query.get("update_time") is not None

    def unconditional(self) -> "_Invocation":
        """Return the same, for an answer with everything."""
        return structs.replace(self, query={**self.query, "update_time": None})

    def request(self, dialect: Dialect, *, resends: bool = False) -> Request:
        """Return the request in the server's version; raise like `Operation.target`."""
        target, pairs = self.operation.target(dialect.version, self.path, self.query)
        return Request(
            operation=self.operation.name,
            method=self.operation.method,
            path=target,
            query=pairs,
            content=self.body,
            user=self.user,
            is_resent=resends and self.may_repeat,
        )


class Caller:
    """Performs operations at one cluster. Any call may raise `SlurmError`, and TypeError for an unknown parameter.

    Reads are retried while Slurm cannot answer. An operation that changes something is retried only
    if its request was not sent. The table of operations says which is which, not the HTTP method.
    """

    def __init__(
        self,
        transport: Sender,
        *,
        connections: int,
        attempts: int,
        observe: Observe,
        versions: Sequence[int] = VERSIONS,
        resends: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Create a caller; nothing is sent.

        Args:
            observe: Returns a context manager for each call, retries included, once it has a connection.
            resends: Send a read again at once if its connection breaks, in addition to the attempts:
                a restarted slurmrestd leaves old connections behind.
        """
        self.transport = transport
        self._slots = asyncio.Semaphore(connections)
        self._attempts = attempts
        self._versions = tuple(versions)
        self._observe = observe
        self._resends = resends
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
    ) -> bytes:
        """Perform an operation and return the JSON of its answer; b"" if nothing has changed (HTTP 304).

        Args:
            query: The parameters of its query, by their names in the table of operations.
            user: The user to act as, by name or uid; "" for the token's own.
        """

        def read(answer: bytes) -> bytes:
            answers.decode(name, answer, Answer)
            return answer

        return await self.perform(name, path, query, body, user=user, read=read) or b""

    async def perform(
        self,
        name: str,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
        body: bytes | None = None,
        *,
        read: Callable[[bytes], T],
        user: str = "",
        label: str = "",
        is_repeatable: bool = False,
    ) -> T | None:
        """Perform an operation and read its answer; None if nothing has changed since the query's `update_time`.

        Args:
            read: Decodes an answer with status 200, or raises its `errors`, as
                `answers.decode` and `answers.listing` do.
            label: The operation's label for `observe`; "" for its name.
            is_repeatable: Treat it like a read although it changes something: doing it twice is
                harmless.
        """
        operation = OPERATIONS[name]
        invocation = _Invocation(
            operation=operation,
            path=path or {},
            query=query or {},
            body=body,
            user=user,
            may_repeat=is_repeatable or not operation.mutates,
        )
        async with self._slots:
            with self._observe(label or name):
                return await self._perform_with_retries(invocation, read)

    @asynccontextmanager
    async def stream(
        self,
        name: str,
        query: Mapping[str, Value],
        *,
        user: str = "",
        timeout_s: float | None = None,
        label: str = "",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Perform a read without retries; the block reads the answer piece by piece.

        If nothing has changed since the query's `update_time`, its status is 304. `timeout_s` is the
        deadline for each piece; None for the client's.
        """
        invocation = _Invocation(
            operation=OPERATIONS[name], path={}, query=query, body=None, user=user, may_repeat=True
        )
        async with self._slots:
            with self._observe(label or name):
                dialect = await self._dialect_for(invocation.operation)
                for _ in self._versions:
                    request = structs.replace(invocation.request(dialect), timeout_s=timeout_s)
                    async with self.transport.open(request) as response:
                        unchanged = response.status == NOT_MODIFIED and invocation.is_conditional
                        if response.status == OK or unchanged:
                            yield response
                            return
                        body = await self.transport.rest(name, response)
                        reply = Reply(status=response.status, body=body)
                    if not reply.is_unknown_path:
                        answers.refuse(name, reply)
                    dialect = await self._renegotiated(invocation.operation, dialect)
                raise _unsteady(name)

    async def dialect(self) -> Dialect:
        """Return the API version in use; negotiate it until that has succeeded once.

        Raises:
            TooOld: If slurmrestd speaks no version that we speak.
            Unauthorized: If it does not accept the token.
            Unavailable: If it does not answer, or its answer cannot be decoded.
        """
        if self._dialect is not None:
            return self._dialect
        async with self._negotiating:
            if self._dialect is None:
                try:
                    self._dialect = await negotiate(self.transport, self._versions)
                except (LostReply, Malformed) as error:
                    # Whatever happened to the ping, the actual request has not been sent.
                    raise Unavailable(error.operation, error.words, status=error.status) from error
            return self._dialect

    async def _perform_with_retries(
        self, invocation: _Invocation, read: Callable[[bytes], T]
    ) -> T | None:
        for number in range(1, self._attempts + 1):
            try:
                return await self._perform_once(invocation, read)
            except Unavailable as error:
                is_lost = isinstance(error, LostReply)
                if number == self._attempts or (is_lost and not invocation.may_repeat):
                    raise
            await asyncio.sleep(_FIRST_DELAY_S * 2 ** (number - 1) * (0.5 + self._jitter()))
        raise AssertionError("the last attempt returns or raises")

    async def _perform_once(self, invocation: _Invocation, read: Callable[[bytes], T]) -> T | None:
        reply = await self._exchange(invocation)
        if reply.status == HTTPStatus.INTERNAL_SERVER_ERROR and invocation.is_conditional:
            # Before 26.05, slurmrestd fails if nodes have changed but partitions have not.
            reply = await self._exchange(invocation.unconditional())
        if reply.status == NOT_MODIFIED and invocation.is_conditional:
            return None
        try:
            if reply.status != OK:
                answers.refuse(invocation.operation.name, reply)
            return read(reply.body)
        except (Unavailable, Malformed):
            self.transport.avoid(reply.server)
            raise

    async def _exchange(self, invocation: _Invocation) -> Reply:
        dialect = await self._dialect_for(invocation.operation)
        for _ in self._versions:
            request = invocation.request(dialect, resends=self._resends)
            reply = await self.transport.exchange(request)
            if not reply.is_unknown_path:
                return reply
            dialect = await self._renegotiated(invocation.operation, dialect)
        raise _unsteady(invocation.operation.name)

    async def _dialect_for(self, operation: Operation) -> Dialect:
        """Return the version in use; negotiate it again if the operation needs a newer one."""
        dialect = await self.dialect()
        if dialect.version < operation.since <= max(self._versions):
            self._forget(dialect)
            dialect = await self.dialect()
        if dialect.version < operation.since:
            raise _lacking(operation, dialect, f" ({parser(operation.since)})")
        return dialect

    async def _renegotiated(self, operation: Operation, spoken: Dialect) -> Dialect:
        """Negotiate again after an unknown path: slurmrestd may have been upgraded."""
        self._forget(spoken)
        dialect = await self.dialect()
        if dialect.version == spoken.version:
            raise _lacking(operation, dialect, ", or the plugin that serves it (slurmrestd -s)")
        return dialect

    def _forget(self, spoken: Dialect) -> None:
        """Negotiate next time, unless another call has already done so."""
        if self._dialect is spoken:
            self._dialect = None


def _lacking(operation: Operation, dialect: Dialect, what: str) -> TooOld:
    where = operation.path.replace("{version}", parser(dialect.version))
    return TooOld(
        operation.name,
        f"slurmrestd {dialect.release} has no {operation.method} {where}: a newer Slurm is needed{what}",
    )


def _unsteady(operation: str) -> TooOld:
    return TooOld(operation, "slurmrestd offered another version of the API at every attempt")
