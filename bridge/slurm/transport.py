"""One HTTP exchange with slurmrestd: token, deadline, and whether a request that failed had left us.

Requests go straight to httpx's transport: its client (redirects, cookies, authentication, a default of everything merged
into each request) costs as much again as the exchange itself, and slurmrestd needs none of it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp
import httpx

from bridge.slurm.errors import LostReply, Unavailable
from bridge.slurm.tls import ClientTls
from bridge.slurm.token import TokenFile

REFUSED_TOKEN: Final = (401, 511)
"""slurmrestd's refusal, and slurmctld's; an expired token gets the latter."""

NOT_FOUND: Final = 404

_HEADERS: Final = {"User-Agent": "slurm-bridge"}
_HEADERS_WITH_BODY: Final = {**_HEADERS, "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer of whatever status, read to its end."""

    status: int
    body: bytes

    @property
    def is_unknown_path(self) -> bool:
        """There is no such path at the server, which says so in text; an unknown job is 404 with JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


class Transport:
    """Sends requests; knows nothing of what they mean."""

    def __init__(
        self,
        http: httpx.AsyncBaseTransport,
        url: str,
        token: TokenFile,
        tls: ClientTls,
        *,
        timeout_s: float,
    ) -> None:
        """url: slurmrestd's, without a path."""
        self.token = token
        self._tls = tls
        self._http = http
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        # Half of the deadline: then a server that cannot be reached is told from a reply that got lost.
        self._extensions = {"timeout": httpx.Timeout(None, connect=timeout_s / 2).as_dict()}

    async def exchange(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        params: Sequence[tuple[str, str]] = (),
        content: bytes | None = None,
        user: str = "",
    ) -> Reply:
        """Send a request, and once more if its token was refused and the file holds another one by now.

        user: as whom it is meant, where that is not the token's own user.

        Raises:
            Unauthorized: there is no token to send.
            Unavailable: nothing was sent.
            LostReply: it was sent, and no whole answer came back.
        """
        token = self.token.read()
        try:
            request = httpx.Request(
                method,
                f"{self._url}{path}",
                params=list(params) or None,
                content=content,
                headers=_HEADERS if content is None else _HEADERS_WITH_BODY,
                extensions=self._extensions,
            )
        except httpx.InvalidURL as error:
            raise Unavailable(operation, f"slurmrestd's URL {self._url}: {error}") from error
        if user:
            request.headers["X-SLURM-USER-NAME"] = user
        reply = await self._send(operation, request, token)
        if reply.status in REFUSED_TOKEN and (renewed := self.token.read(again=True)) != token:
            reply = await self._send(operation, request, renewed)
        return reply

    async def _send(self, operation: str, request: httpx.Request, token: str) -> Reply:
        request.headers["X-SLURM-USER-TOKEN"] = token
        where = f"slurmrestd at {request.url.scheme}://{request.url.netloc.decode()}"
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._http.handle_async_request(request)
                try:
                    body = await response.aread()
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise LostReply(
                operation, f"no answer from {where} in {self._timeout_s:g} s"
            ) from error
        except (httpx.HTTPError, aiohttp.ClientError) as error:
            self._tls.reload()
            if _never_left(error):
                raise Unavailable(operation, f"cannot reach {where}: {error}") from error
            # Not what the error says of itself: aiohttp's may repeat the request, token and all.
            raise LostReply(operation, f"{where} broke off ({type(error).__name__})") from error
        return Reply(status=response.status_code, body=body)


def _never_left(error: Exception) -> bool:
    """Whether the connection was not even made.

    The class of httpx-aiohttp's errors does not tell: it calls a reset in the middle of an answer ConnectTimeout, too.
    """
    return isinstance(error, httpx.UnsupportedProtocol) or isinstance(
        error.__cause__, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    )
