"""The client of slurmrestd: slurm-client with the bridge's labels and token.

Connections, fail-over, API versions, errors and the meaning of answers are `slurmclient`'s. This module
reports calls under the bridge's names.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

import msgspec

from slurmclient import Dialect, Tls, TokenFile
from slurmclient.api.operation import Value
from slurmclient.calls import answers
from slurmclient.calls.caller import Caller
from slurmclient.calls.observing import OnCall
from slurmclient.errors import Malformed, SlurmError, Unavailable
from slurmclient.transport.exchange import NOT_MODIFIED
from slurmclient.transport.failover import Sender, Transport
from slurmclient.transport.tokens import TokenSource
from slurmclient.wire.reading import Answer
from slurmclient.wire.splitting import Splitter
from slurmruntime.slurm import errors

VERSIONS: Final = (45, 44, 43)
"""The API versions ("data parsers") we support, newest first: Slurm 26.05, 25.11 and 25.05."""

A = TypeVar("A", bound=Answer)

_PIECE: Final = 64 * 2**10
"""Bytes of a list that are read at a time, in some milliseconds."""
_OBJECTS: Final = 200
"""Objects of a list that are read before other tasks get their turn."""
_LONGEST_OBJECT: Final = 2**20
_LISTING_S: Final = 20.0


class ExpiringToken(TokenSource, Protocol):
    """A source of tokens that knows when the current one expires."""

    @property
    def expires_at(self) -> datetime | None:
        """When it expires; None if that is not known, or if there is no token."""

    @property
    def issued_at(self) -> datetime | None:
        """When it was issued; None as for its expiry."""
        ...


LONGEST_ANSWER_BYTES = 64 * 2**20
"""Longest answer: the states of a million jobs, or 40 000 nodes. Reading it takes several times as much memory, and the
chart limits the leaders to 1 GiB."""


class SlurmClient:
    """Client of slurmrestd, or of several for the same Slurm. Any call may raise `SlurmError`.

    It retries only after a rejected token, and reads once if a connection breaks; whether anything
    else may be retried is for the caller to decide.
    """

    def __init__(
        self, transport: Sender, *, token: ExpiringToken, connections: int, on_call: OnCall
    ) -> None:
        self.token = token
        """The token, for callers that talk to slurmctld directly."""
        self._on_call = on_call
        self._caller = Caller(
            transport,
            connections=connections,
            attempts=1,
            observe=self.observed,
            versions=VERSIONS,
            resends=True,
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        urls: str | Sequence[str],
        *,
        token_file: Path | str,
        tls: Tls | None = None,
        connections: int = 8,
        request_timeout_s: float = 10,
        on_call: OnCall = lambda _operation, _seconds, _outcome: None,
    ) -> AsyncIterator[Self]:
        """Open a connection pool; nothing is sent before the first call, so Slurm may be down.

        Args:
            urls: Of slurmrestd, without a path: `http://slurmrestd:6820`; several for fail-over.
            tls: For an https URL; by default the system's CAs are trusted and no client certificate
                is presented.
            connections: Maximum number of concurrent calls; further calls wait. slurmrestd has 124
                connections for all its clients and never closes an idle one.

        Raises:
            Unavailable: a URL is invalid.
        """
        token = TokenFile(token_file)
        try:
            transport = Transport(
                (urls,) if isinstance(urls, str) else urls,
                token,
                tls,
                connections=connections,
                timeout_s=request_timeout_s,
                user_agent="slurm-bridge",
                most_bytes=LONGEST_ANSWER_BYTES,
            )
        except ValueError as error:
            raise Unavailable("connect", f"cannot reach slurmrestd: {error}") from error
        try:
            yield cls(transport, token=token, connections=connections, on_call=on_call)
        finally:
            await transport.close()

    async def call(
        self,
        label: str,
        operation: str,
        path: Mapping[str, str | int] | None = None,
        *,
        answer: type[A],
        query: Mapping[str, Value] | None = None,
        body: object = None,
        user: str = "",
        is_repeatable: bool = False,
    ) -> A:
        """Call slurmrestd and return the response if its status is 200 and it has no `errors`.

        Args:
            label: For metrics and messages: `job.submit`.
            query: A list repeats a parameter.
            user: User to impersonate, by name or uid; "": the token's own user.
            is_repeatable: Send a change again at once if the connection breaks, as it is
                idempotent.
        """
        result = await self._caller.perform(
            operation,
            path,
            query,
            None if body is None else msgspec.json.encode(body),
            read=lambda received: answers.decode(operation, received, answer),
            user=user,
            label=label,
            is_repeatable=is_repeatable,
        )
        if result is None:
            raise Malformed(label, "the response says only that nothing has changed", status=304)
        return result

    async def call_if_changed(
        self, label: str, operation: str, *, since: int, answer: type[A]
    ) -> A | None:
        """Read what has changed since a time of slurmctld's clock, in seconds, otherwise like `call`; None if nothing has."""
        return await self._caller.perform(
            operation,
            query={"update_time": since},
            read=lambda received: answers.decode(operation, received, answer),
            label=label,
        )

    async def each_of(
        self,
        label: str,
        operation: str,
        key: str,
        *,
        take: Callable[[bytes], None],
        answer: type[A],
        most_bytes: int,
        since: int | None = None,
    ) -> A | None:
        """Read a long list in slices, so that other tasks run in between.

        Args:
            take: Called with each object; raises SlurmError to stop.
            since: As in `call_if_changed`; None for the whole list.

        Returns:
            The answer around the list; None if nothing has changed.
        """
        query: dict[str, Value] = {} if since is None else {"update_time": since}
        splitter = Splitter(operation, key, longest=_LONGEST_OBJECT)
        length = 0
        try:
            async with (
                asyncio.timeout(_LISTING_S),
                self._caller.stream(operation, query, label=label) as response,
            ):
                if response.status == NOT_MODIFIED:
                    return None
                async for piece in response.content.iter_chunked(_PIECE):
                    length += len(piece)
                    if length > most_bytes:
                        raise Malformed(label, f"expected at most {most_bytes} bytes, got more")
                    for number, body in enumerate(splitter.feed(piece)):
                        if number % _OBJECTS == 0:
                            await asyncio.sleep(0)
                        take(body)
                return answers.decode(operation, splitter.around, answer)
        except TimeoutError:
            raise Unavailable(label, f"its list did not end within {_LISTING_S:g} s") from None

    @contextmanager
    def observed(self, label: str) -> Iterator[None]:
        """Report duration and outcome of the block to `on_call`; its errors name the call."""
        began = time.perf_counter()  # uvloop's own clock has a resolution of 1 ms
        outcome = "cancelled"
        try:
            with errors.worded(label):
                yield
            outcome = "ok"
        except SlurmError as error:
            outcome = errors.outcome(error)
            raise
        finally:
            self._on_call(label, time.perf_counter() - began, outcome)

    async def dialect(self) -> Dialect:
        """Return the server's dialect, negotiated at the first successful call; raises like `Caller.dialect`."""
        with errors.worded("ping"):
            return await self._caller.dialect()
