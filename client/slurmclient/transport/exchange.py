"""One exchange with one slurmrestd: deadlines, and whether a failed request had been sent."""

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

OK: Final = 200
NOT_MODIFIED: Final = 304
NOT_FOUND: Final = 404

_NO_ANSWER: Final = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError
_NOT_CONNECTED: Final = (
    aiohttp.InvalidURL,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, ready to be sent."""

    operation: str
    method: str
    path: str
    """The path, percent-encoded, without the query."""
    query: Sequence[tuple[str, str]] = ()
    content: bytes | None = None
    user: str = ""
    """The user to act as, by name or uid; "" for the token's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete answer with any status."""

    status: int
    body: bytes

    @property
    def is_unknown_path(self) -> bool:
        """True if the server has no such path: 404 as text. An unknown job is 404 with JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


def check_url(url: str) -> None:
    """Check that a URL has a form that `Server` takes.

    Raises:
        ValueError: If it has another form.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https", "unix"} or not (parts.hostname or parts.path):
        raise ValueError(f"expected http://HOST:PORT, https://… or unix:///PATH, got {url!r}")


class Server:
    """One slurmrestd, and a pool of connections to it."""

    def __init__(self, url: str, tls: Tls | None, *, connections: int, timeout_s: float) -> None:
        """Create the pool; nothing is sent.

        Args:
            url: `http://host:6820`, `https://…` or `unix:///run/slurmrestd.socket`.
            tls: Certificates for https; None to trust the system's CAs.
            connections: The maximum number of connections.
            timeout_s: The deadline for one exchange.

        Raises:
            ValueError: If the URL has another form.
        """
        check_url(url)
        parts = urlsplit(url)
        self._tls = tls or (Tls() if parts.scheme == "https" else None)
        is_unix = parts.scheme == "unix"
        self._base = "http://localhost" if is_unix else url.rstrip("/")
        # For messages, so without the password that a URL may contain.
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
            # Half of the deadline, so that a failure to connect is not taken for a lost reply.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=timeout_s / 2, sock_read=timeout_s
            ),
        )
        # aiohttp would repeat a GET or DELETE whose connection breaks; some of Slurm's mutate.
        self._session._retry_connection = False  # noqa: SLF001  # no public way

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    @asynccontextmanager
    async def exchange(
        self, request: Request, headers: dict[str, str], *, is_streamed: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; the block reads the answer's body.

        Args:
            request: The request.
            headers: Its headers.
            is_streamed: Apply the deadline to each piece of the answer, not to all of it.

        Raises:
            Unavailable: If nothing was sent.
            LostReply: If the request was sent and no complete answer came back.
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
            # Name only the type: the text of an aiohttp error may contain the request and its token.
            raise LostReply(
                request.operation, f"{where} closed the connection ({type(error).__name__})"
            ) from error

    def _reload(self) -> None:
        if self._tls:
            self._tls.reload()
