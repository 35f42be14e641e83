"""One exchange with one slurmrestd: deadlines, and whether a failed request had been sent."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from msgspec import Struct
from yarl import URL

from slurmclient.errors import LostReply, Malformed, Unavailable
from slurmclient.transport.connection import connector
from slurmclient.transport.tls import Tls

OK: Final = 200
NOT_MODIFIED: Final = 304
NOT_FOUND: Final = 404

_NO_ANSWER: Final = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError
_NOT_CONNECTED: Final = (
    aiohttp.InvalidURL,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
)


class Request(Struct, frozen=True, kw_only=True):
    """A request, ready to be sent."""

    operation: str
    method: str
    path: str
    """The path, percent-encoded, without the query."""
    query: Sequence[tuple[str, str]] = ()
    content: bytes | None = None
    user: str = ""
    """The user to act as, by name or uid; "" for the token's own."""
    is_resent: bool = False
    """Whether to send it again at once if the connection breaks before an answer; not a POST."""
    timeout_s: float | None = None
    """The deadline for each piece of a streamed answer; None for the server's."""


class Reply(Struct, frozen=True, kw_only=True):
    """A complete answer with any status."""

    status: int
    body: bytes
    server: int = 0
    """The index of the server that sent it."""

    @property
    def is_unknown_path(self) -> bool:
        """True if the server has no such path: 404 as text. An unknown job is 404 with JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


def check_url(url: str) -> None:
    """Raise ValueError if a URL has a form that `Server` does not take."""
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in {"http", "https", "unix"}
        is_valid = is_known and bool(parts.hostname or parts.path) and parts.port != 0
    except ValueError:  # half of an IPv6 address, a port that is no number
        is_valid = False
    if not is_valid:
        raise ValueError(f"expected http://HOST:PORT, https://… or unix:///PATH, got {url!r}")


class Server:
    """One slurmrestd, and a pool of connections to it."""

    def __init__(
        self, url: str, tls: Tls | None, *, connections: int, timeout_s: float, user_agent: str
    ) -> None:
        """Create the pool; nothing is sent.

        Args:
            url: `http://host:6820`, `https://…` or `unix:///run/slurmrestd.socket`.
            tls: Certificates for https; None to trust the system's CAs.

        Raises:
            ValueError: If the URL has another form.
        """
        check_url(url)
        parts = urlsplit(url)
        self._tls = (tls or Tls()) if parts.scheme == "https" else None
        is_unix = parts.scheme == "unix"
        self._base = "http://localhost" if is_unix else url.rstrip("/")
        # For messages, so without the password that a URL may contain.
        self.address = url if is_unix else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._timeout_s = timeout_s
        self._pool = connector(limit=connections, socket=parts.path if is_unix else "")
        self._resending, self._sending_once = (
            aiohttp.ClientSession(
                connector=self._pool,
                connector_owner=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": user_agent},
            )
            for _ in range(2)
        )
        # Half of the deadline, so that a failure to connect is not taken for a lost reply.
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=timeout_s / 2)
        # aiohttp sends a GET or DELETE again if its connection breaks; some of Slurm's mutate.
        self._sending_once._retry_connection = False  # noqa: SLF001  # no public way

    async def close(self) -> None:
        """Close all connections."""
        for session in (self._resending, self._sending_once):
            await session.close()
        await self._pool.close()

    async def send(
        self, request: Request, headers: dict[str, str], *, most_bytes: int
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of its answer.

        Raises:
            Unavailable: If nothing was sent.
            LostReply: If the request was sent and no complete answer came back in time.
            Malformed: If the answer is longer than `most_bytes`.
        """
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._request(request, headers, self._limits) as response,
            ):
                return response.status, await read_body(request.operation, response, most_bytes)
        except _NO_ANSWER as error:
            raise self._failure(request.operation, error, self._timeout_s) from error

    @asynccontextmanager
    async def open(
        self, request: Request, headers: dict[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; the block reads the answer, and each piece has the deadline.

        Raises:
            Unavailable: If nothing was sent.
            LostReply: If the request was sent and no complete answer came back.
        """
        timeout_s = request.timeout_s or self._timeout_s
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeout_s / 2, sock_read=timeout_s
        )
        try:
            async with self._request(request, headers, limits) as response:
                yield response
        except _NO_ANSWER as error:
            raise self._failure(request.operation, error, timeout_s) from error

    def _request(
        self, request: Request, headers: dict[str, str], limits: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        query = f"?{urlencode(request.query)}" if request.query else ""
        session = self._resending if request.is_resent else self._sending_once
        return session.request(
            request.method,
            URL(f"{self._base}{request.path}{query}", encoded=True),
            data=request.content,
            headers=headers,
            # A connection is only used again with the same context.
            ssl=self._tls.context if self._tls else True,
            allow_redirects=False,
            timeout=limits,
        )

    def _failure(self, operation: str, error: Exception, timeout_s: float) -> Unavailable:
        """Return the error for a failed exchange; reload the certificates if they may be the cause."""
        where = f"slurmrestd at {self.address}"
        if isinstance(error, TimeoutError) and not isinstance(error, _NOT_CONNECTED):
            return LostReply(operation, f"no response from {where} within {timeout_s:g} s")
        if self._tls:
            self._tls.reload()
        if isinstance(error, _NOT_CONNECTED):
            return Unavailable(operation, f"cannot reach {where}: {error}")
        # Name only the type: the text of an aiohttp error may contain the request and its token.
        return LostReply(operation, f"{where} closed the connection ({type(error).__name__})")


async def read_body(operation: str, response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Read an answer's body; raise Malformed if it is longer than `most_bytes`, and leave the rest unread."""
    pieces: list[bytes] = []
    length = 0
    while piece := await response.content.readany():
        length += len(piece)
        if length > most_bytes:
            raise Malformed(
                operation,
                f"expected a response of at most {most_bytes} bytes, got more",
                status=response.status,
            )
        pieces.append(piece)
    return b"".join(pieces)
