"""One HTTP exchange with slurmrestd: token, deadline, and whether a request that failed had left us."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from bridge.slurm.errors import LostReply, Unavailable
from bridge.slurm.tls import ClientTls
from bridge.slurm.token import TokenFile

REFUSED_TOKEN: Final = (401, 511)
"""slurmrestd's refusal, and slurmctld's; an expired token gets the latter."""

NOT_FOUND: Final = 404

_NO_ANSWER: Final = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError
_NOT_CONNECTED: Final = (
    aiohttp.InvalidURL,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
)


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
        session: aiohttp.ClientSession,
        url: str,
        token: TokenFile,
        tls: ClientTls,
        *,
        timeout_s: float,
    ) -> None:
        """url: slurmrestd's, without a path."""
        self.token = token
        self._tls = tls
        self._session = session
        self._url = url.rstrip("/")
        scheme, _, rest = self._url.partition("://")
        self._address = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
        """For people: without a password that a proxy may want."""
        self._timeout_s = timeout_s
        # Half of the deadline: then a server that cannot be reached is told from a reply that got lost.
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=timeout_s / 2)

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
        query = f"?{urlencode(params)}" if params else ""
        try:
            url = URL(f"{self._url}{path}{query}", encoded=True)
        except ValueError as error:
            raise Unavailable(operation, f"slurmrestd's URL {self._url}: {error}") from error
        headers = {"X-SLURM-USER-NAME": user} if user else {}
        if content is not None:
            headers["Content-Type"] = "application/json"
        headers["X-SLURM-USER-TOKEN"] = token
        reply = await self._send(operation, method, url, content, headers)
        if reply.status in REFUSED_TOKEN and (renewed := self.token.read(again=True)) != token:
            headers["X-SLURM-USER-TOKEN"] = renewed
            reply = await self._send(operation, method, url, content, headers)
        return reply

    async def _send(
        self,
        operation: str,
        method: str,
        url: URL,
        content: bytes | None,
        headers: dict[str, str],
    ) -> Reply:
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.request(
                    method,
                    url,
                    data=content,
                    headers=headers,
                    allow_redirects=False,
                    timeout=self._limits,
                ) as response,
            ):
                return Reply(status=response.status, body=await response.read())
        except _NO_ANSWER as error:
            where = f"slurmrestd at {self._address}"
            if isinstance(error, _NOT_CONNECTED):
                self._tls.reload()
                raise Unavailable(operation, f"cannot reach {where}: {error}") from error
            if isinstance(error, TimeoutError):
                words = f"no answer from {where} in {self._timeout_s:g} s"
                raise LostReply(operation, words) from error
            self._tls.reload()
            # Not what the error says of itself: aiohttp's may repeat the request, token and all.
            raise LostReply(operation, f"{where} broke off ({type(error).__name__})") from error
