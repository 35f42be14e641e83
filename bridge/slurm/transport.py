"""One HTTP exchange with slurmrestd: token, deadline, fail-over, and whether a failed request was sent."""

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
    server: int = 0
    """Index of the server that sent it."""

    @property
    def is_unknown_path(self) -> bool:
        """Whether the server lacks the path, which it reports as text; an unknown job is JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


class Transport:
    """Sends requests without interpreting them."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        urls: Sequence[str],
        token: TokenFile,
        tls: ClientTls,
        *,
        timeout_s: float,
    ) -> None:
        """Prepare the transport; `urls` are slurmrestd's, without a path, at least one."""
        self.token = token
        self._tls = tls
        self._session = session
        self._urls = tuple(url.rstrip("/") for url in urls)
        self._current = 0
        """Index of the URL that is used until it fails."""
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

        It goes to the slurmrestd that responded last, and to the others in turn while none can be
        reached. What may have been sent is never sent to another.

        `user` is the user to impersonate, if not the token's own.

        Raises:
            Unauthorized: there is no token to send.
            Unavailable: nothing was sent.
            LostReply: it was sent, but no complete response came back.
        """
        token = self.token.read()
        target = f"{path}?{urlencode(params)}" if params else path
        headers = {"X-SLURM-USER-NAME": user} if user else {}
        if content is not None:
            headers["Content-Type"] = "application/json"
        headers["X-SLURM-USER-TOKEN"] = token
        reply = await self._reach(operation, method, target, content, headers)
        if reply.status in REFUSED_TOKEN and (renewed := self.token.read(again=True)) != token:
            headers["X-SLURM-USER-TOKEN"] = renewed
            reply = await self._reach(operation, method, target, content, headers)
        return reply

    def avoid(self, server: int) -> None:
        """Send the next requests elsewhere, unless that is decided already."""
        if server == self._current:
            self._current = (server + 1) % len(self._urls)

    async def _reach(
        self,
        operation: str,
        method: str,
        target: str,
        content: bytes | None,
        headers: dict[str, str],
    ) -> Reply:
        """Send a request to the first server that can be reached."""
        failures: list[Unavailable] = []
        first = self._current
        for n in range(len(self._urls)):
            server = (first + n) % len(self._urls)
            try:
                return await self._send(operation, method, target, content, headers, server=server)
            except LostReply:
                self.avoid(server)
                raise
            except Unavailable as error:
                self.avoid(server)
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise Unavailable(operation, "; ".join(each.words for each in failures))

    async def _send(
        self,
        operation: str,
        method: str,
        target: str,
        content: bytes | None,
        headers: dict[str, str],
        *,
        server: int,
    ) -> Reply:
        where = f"slurmrestd at {_address(self._urls[server])}"
        try:
            url = URL(f"{self._urls[server]}{target}", encoded=True)
        except ValueError as error:
            raise Unavailable(operation, f"{where}: not a URL: {error}") from error
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.request(
                    method,
                    url,
                    data=content,
                    headers=headers,
                    ssl=self._tls.context,  # a connection is only reused with the same context
                    allow_redirects=False,
                    timeout=self._limits,
                ) as response,
            ):
                return Reply(status=response.status, body=await response.read(), server=server)
        except _NO_ANSWER as error:
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


def _address(url: str) -> str:
    """Return a URL for messages: without the password a proxy may require."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
