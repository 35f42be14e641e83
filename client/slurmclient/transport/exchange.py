"""One slurmrestd."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from slurmclient.errors import LostReply, Unavailable
from slurmclient.transport.connection import connector
from slurmclient.transport.tls import Tls

NOT_FOUND: Final = 404


_NO_ANSWER: Final = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError


_NOT_CONNECTED: Final = (
    aiohttp.InvalidURL,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent."""

    operation: str
    method: str
    path: str
    """Percent-encoded, without the query."""
    query: Sequence[tuple[str, str]] = ()
    content: bytes | None = None
    user: str = ""
    """As whom it is meant, where that is not the token's own user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer of whatever status, read to its end."""

    status: int
    body: bytes

    @property
    def is_unknown_path(self) -> bool:
        """There is no such path at the server, which says so in text; an unknown job is 404 with JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


class Server:
    """One slurmrestd."""

    def __init__(self, url: str, tls: Tls | None, *, connections: int, timeout_s: float) -> None:
        """Open a pool; nothing is sent.

        Args:
            url: `http://host:6820`, `https://…`, or `unix:///run/slurmrestd.socket`.
            tls: For https.
            connections: At most so many.
            timeout_s: For one exchange.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https", "unix"} or not (parts.hostname or parts.path):
            raise ValueError(f"expected http://HOST:PORT, https://… or unix:///PATH, got {url!r}")
        self._tls = tls or (Tls() if parts.scheme == "https" else None)
        is_unix = parts.scheme == "unix"
        self._base = "http://localhost" if is_unix else url.rstrip("/")
        # For people: without a password that a proxy may want.
        self.address = url if is_unix else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._timeout_s = timeout_s
        self._session = aiohttp.ClientSession(
            connector=connector(
                limit=connections,
                tls=self._tls.context if self._tls else None,
                socket=parts.path if is_unix else "",
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "slurm-client"},
            # Half of the deadline: then a server that cannot be reached is told from a reply that got lost.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=timeout_s / 2, sock_read=timeout_s
            ),
        )
        # aiohttp repeats a GET or DELETE whose connection breaks; some of Slurm's change something.
        self._session._retry_connection = False  # noqa: SLF001  # there is no public way

    async def close(self) -> None:
        """Close the pool."""
        await self._session.close()

    @asynccontextmanager
    async def exchange(
        self, request: Request, headers: dict[str, str], *, is_streamed: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; the body of the answer is read inside.

        Raises:
            Unavailable: nothing was sent.
            LostReply: it was sent, and no whole answer came back.
        """
        query = f"?{urlencode(request.query)}" if request.query else ""
        where = f"slurmrestd at {self.address}"
        try:
            async with (
                asyncio.timeout(None if is_streamed else self._timeout_s),
                self._session.request(
                    request.method,
                    URL(f"{self._base}{request.path}{query}", encoded=True),
                    data=request.content,
                    headers=headers,
                    allow_redirects=False,
                ) as response,
            ):
                yield response
        except _NO_ANSWER as error:
            if isinstance(error, _NOT_CONNECTED):
                self._reload()
                raise Unavailable(request.operation, f"cannot reach {where}: {error}") from error
            if isinstance(error, TimeoutError):
                words = f"no answer from {where} in {self._timeout_s:g} s"
                raise LostReply(request.operation, words) from error
            self._reload()
            # Not what the error says of itself: aiohttp's may repeat the request, token and all.
            raise LostReply(
                request.operation, f"{where} broke off ({type(error).__name__})"
            ) from error

    def _reload(self) -> None:
        if self._tls:
            self._tls.reload()
