"""The client shared by this package: API version, limit on concurrent calls, decoded responses."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeVar

import aiohttp
import msgspec

from bridge.slurm import lenient, wire
from bridge.slurm.connection import Connector
from bridge.slurm.errors import (
    LostReply,
    Malformed,
    Rejected,
    SlurmError,
    TooOld,
    Unavailable,
    classify,
)
from bridge.slurm.tls import ClientTls
from bridge.slurm.token import TokenFile
from bridge.slurm.transport import Reply, Transport

PARSERS: Final = ("v0.0.45", "v0.0.44", "v0.0.43")
"""The API versions ("data parsers") we support, newest first: Slurm 26.05, 25.11 and 25.05."""

OK: Final = 200
NOT_MODIFIED: Final = 304

OnCall = Callable[[str, float, str], None]
"""Called after every call with its operation (`job.submit`), its duration in seconds and its
outcome (`ok`, an error's `outcome`, `cancelled`)."""

A = TypeVar("A", bound=wire.Answer)
S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """API version and release of the server."""

    parser: str
    release: tuple[int, int]
    """Release of slurmrestd, (26, 5); slurmctld's is the same or newer."""


class SlurmClient:
    """Client of slurmrestd, or of several for the same Slurm.

    It retries only after a rejected token; whether anything else may be retried is for the caller
    to decide.
    """

    def __init__(self, transport: Transport, *, connections: int, on_call: OnCall) -> None:
        self._transport = transport
        self._slots = asyncio.Semaphore(connections)
        self._on_call = on_call
        self._dialect: Dialect | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        urls: str | Sequence[str],
        *,
        token_file: Path | str,
        tls: ClientTls | None = None,
        connections: int = 8,
        request_timeout_s: float = 10,
        on_call: OnCall = lambda _operation, _seconds, _outcome: None,
    ) -> AsyncIterator[Self]:
        """Open a connection pool; nothing is sent before the first call, so Slurm may be down.

        Args:
            urls: Of slurmrestd, without a path: `http://slurmrestd:6820`; several for fail-over.
            token_file: Holds a JWT of root or SlurmUser.
            tls: For an https URL; by default the system's CAs are trusted and no client certificate
                is presented.
            connections: Maximum number of concurrent calls; further calls wait. slurmrestd has 124
                connections for all its clients and never closes an idle one.
            request_timeout_s: For one call, without that wait.
            on_call: Called after every call.
        """
        trust = tls or ClientTls()

        async with aiohttp.ClientSession(
            connector=Connector(limit=connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "slurm-bridge"},
        ) as session:
            transport = Transport(
                session,
                (urls,) if isinstance(urls, str) else urls,
                TokenFile(Path(token_file)),
                trust,
                timeout_s=request_timeout_s,
            )
            yield cls(transport, connections=connections, on_call=on_call)

    @property
    def token(self) -> TokenFile:
        """The token, for callers that talk to slurmctld directly."""
        return self._transport.token

    async def call(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        answer: type[A],
        params: Sequence[tuple[str, str]] = (),
        body: object = None,
        plugin: str = "slurm",
        user: str = "",
    ) -> A:
        """Call slurmrestd and return the response if its status is 200 and it has no `errors`.

        Args:
            operation: For metrics and messages: `job.submit`.
            method: GET, POST or DELETE.
            path: Below the API version: `/job/submit`.
            answer: Type to decode the body as.
            params: The query; keys may repeat.
            body: Sent as JSON.
            plugin: `slurm` for slurmctld, `slurmdb` for slurmdbd.
            user: User to impersonate, by name or uid; "": the token's own user.

        Raises:
            SlurmError: classified by `bridge.slurm.errors`.
        """
        content = None if body is None else msgspec.json.encode(body)
        async with self._slots:
            with self.observed(operation):
                reply = await self._ask(
                    operation,
                    method,
                    f"/{plugin}/{{}}{path}",
                    params=params,
                    content=content,
                    user=user,
                )
                return self._read(operation, reply, answer)

    async def call_if_changed(
        self, operation: str, path: str, *, since: int, answer: type[A]
    ) -> A | None:
        """GET what has changed since a time of slurmctld's clock, in seconds; None if nothing has.

        Otherwise like `call`.
        """
        async with self._slots:
            with self.observed(operation):
                reply = await self._ask(
                    operation,
                    "GET",
                    f"/slurm/{{}}{path}",
                    params=[("update_time", str(since))],
                    content=None,
                    user="",
                )
                if reply.status == NOT_MODIFIED:
                    return None
                return self._read(operation, reply, answer)

    @contextmanager
    def observed(self, operation: str) -> Iterator[None]:
        """Report duration and outcome of the block to `on_call`."""
        began = time.perf_counter()  # uvloop's own clock has a resolution of 1 ms
        outcome = "cancelled"
        try:
            yield
            outcome = "ok"
        except SlurmError as error:
            outcome = error.outcome
            raise
        finally:
            self._on_call(operation, time.perf_counter() - began, outcome)

    async def dialect(self) -> Dialect:
        """Return the server's dialect, negotiated at the first successful call and then cached.

        Raises:
            TooOld: the server offers no API version we support.
            Unauthorized: it does not accept our token.
            Unavailable: it did not respond, or its response was malformed.
        """
        if self._dialect is None:
            try:
                self._dialect = await self._negotiate()
            except (LostReply, Malformed) as error:
                # Whatever happened to the ping, the caller's request has not been sent.
                raise Unavailable(error.operation, error.words, status=error.status) from error
        return self._dialect

    def _read(self, operation: str, reply: Reply, answer: type[A]) -> A:
        read = self._whole(operation, reply, answer)
        if read.errors:
            raise _refusal(operation, reply.status, read)
        return read

    def _whole(self, operation: str, reply: Reply, kind: type[S]) -> S:
        """Decode a successful response; if the server cannot give one, ask another next time."""
        try:
            _refuse_unless_ok(operation, reply)
            return _decode(operation, reply, kind)
        except (Unavailable, Malformed):
            self._transport.avoid(reply.server)
            raise

    async def _ask(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        params: Sequence[tuple[str, str]],
        content: bytes | None,
        user: str,
    ) -> Reply:
        dialect = await self.dialect()
        for _ in PARSERS:
            reply = await self._transport.exchange(
                operation,
                method,
                path.format(dialect.parser),
                params=params,
                content=content,
                user=user,
            )
            if not reply.is_unknown_path:
                return reply
            # slurmrestd may have been replaced by a release with other API versions.
            spoken = dialect
            if self._dialect is spoken:
                self._dialect = None
            dialect = await self.dialect()
            if dialect.parser == spoken.parser:
                break
        raise TooOld(
            operation,
            f"slurmrestd {dialect.release[0]}.{dialect.release[1]:02} has no {method}"
            f" {path.format(dialect.parser)}: a newer Slurm is needed",
        )

    async def _negotiate(self) -> Dialect:
        for parser in PARSERS:
            reply = await self._transport.exchange("ping", "GET", f"/slurm/{parser}/ping/")
            if not reply.is_unknown_path:
                version = self._whole("ping", reply, wire.Ping).meta.slurm.version
                return Dialect(parser=parser, release=(int(version.major), int(version.minor)))
        reply = await self._transport.exchange("openapi", "GET", "/openapi/v3")
        paths = self._whole("openapi", reply, wire.Paths).paths
        offered = {path.split("/")[2] for path in paths if path.startswith("/slurm/v")}
        raise TooOld(
            "ping",
            f"slurmrestd offers {', '.join(sorted(offered)) or 'no Slurm API'}, slurm-bridge"
            f" supports {', '.join(PARSERS)}: it needs Slurm 25.05 or newer",
        )


def _refuse_unless_ok(operation: str, reply: Reply) -> None:
    if reply.status == OK:
        return
    try:
        answer = lenient.whole(reply.body, wire.Answer)
    except lenient.UNDECODABLE:
        # Plain text of slurmrestd or a proxy's error page; the classification ignores the text.
        words = reply.body[:200].decode(errors="replace").strip() or "no body"
        raise classify(reply.status, None)(operation, words, status=reply.status) from None
    raise _refusal(operation, reply.status, answer)


def _refusal(operation: str, status: int, answer: wire.Answer) -> SlurmError:
    problem = answer.errors[0] if answer.errors else None
    number = problem.error_number if problem else None
    words = (problem.error or problem.description) if problem else "no reason given"
    error = classify(status, number)(operation, words, status=status, error_number=number)
    if isinstance(error, Rejected):
        error.job_id = answer.job_id
    return error


def _decode(operation: str, reply: Reply, kind: type[S]) -> S:
    try:
        return lenient.whole(reply.body, kind)
    except lenient.UNDECODABLE as error:
        start = reply.body[:80].decode(errors="replace")
        raise Malformed(
            operation, f"{error}, in a response that starts {start!r}", status=reply.status
        ) from error
