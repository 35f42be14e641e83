"""One HTTP exchange with slurmrestd: token, deadline, and whether a failed request was sent."""

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
"""Statuses for a token rejected by slurmrestd and by slurmctld; an expired one gets the latter."""

NOT_FOUND: Final = 404

_NO_ANSWER: Final = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError
_NOT_CONNECTED: Final = (
    aiohttp.InvalidURL,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete response of any status."""

    status: int
    body: bytes

    @property
    def is_unknown_path(self) -> bool:
        """Whether the server lacks the path, which it reports as text; an unknown job is JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


class Transport:
    """Sends requests without interpreting them."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        token: TokenFile,
        tls: ClientTls,
        *,
        timeout_s: float,
    ) -> None:
        """Prepare the transport; `url` is slurmrestd's, without a path."""
        self.token = token
        self._tls = tls
        self._session = session
        self._url = url.rstrip("/")
        scheme, _, rest = self._url.partition("://")
        self._address = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
        """For messages: without the password a proxy may require."""
        self._timeout_s = timeout_s
        # Half the deadline, to distinguish an unreachable server from a lost reply.
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
        """Send a request; send it again if its token was rejected and the file has a new one.

        `user` is the user to impersonate, if not the token's own.

        Raises:
            Unauthorized: there is no token to send.
            Unavailable: nothing was sent.
            LostReply: it was sent, but no complete response came back.
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
                words = f"no response from {where} within {self._timeout_s:g} s"
                raise LostReply(operation, words) from error
            self._tls.reload()
            # Without the error's own message: aiohttp's may quote the request, including the token.
            words = f"{where} closed the connection ({type(error).__name__})"
            raise LostReply(operation, words) from error
