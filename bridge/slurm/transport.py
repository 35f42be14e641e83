"""One HTTP exchange with slurmrestd: token, deadline, and whether a request that failed had left us."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp
import httpx

from bridge.slurm.errors import LostReply, Unavailable
from bridge.slurm.token import TokenFile

REFUSED_TOKEN: Final = (401, 511)
"""slurmrestd's refusal, and slurmctld's; an expired token gets the latter."""

NOT_FOUND: Final = 404


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

    def __init__(self, http: httpx.AsyncClient, token: TokenFile, *, timeout_s: float) -> None:
        self.token = token
        self._http = http
        self._timeout_s = timeout_s

    async def exchange(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        params: Sequence[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> Reply:
        """Send a request, and once more if its token was refused and the file holds another one by now.

        Raises:
            Unauthorized: there is no token to send.
            Unavailable: nothing was sent.
            LostReply: it was sent, and no whole answer came back.
        """
        token = self.token.read()
        request = self._http.build_request(
            method,
            path,
            params=list(params) or None,
            content=content,
            headers={"Content-Type": "application/json"} if content is not None else None,
        )
        reply = await self._send(operation, request, token)
        if reply.status in REFUSED_TOKEN and (renewed := self.token.read(again=True)) != token:
            reply = await self._send(operation, request, renewed)
        return reply

    async def _send(self, operation: str, request: httpx.Request, token: str) -> Reply:
        request.headers["X-SLURM-USER-TOKEN"] = token
        where = f"slurmrestd at {request.url.scheme}://{request.url.netloc.decode()}"
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._http.send(request)
        except TimeoutError as error:
            raise LostReply(
                operation, f"no answer from {where} in {self._timeout_s:g} s"
            ) from error
        except (httpx.HTTPError, aiohttp.ClientError) as error:
            if _never_left(error):
                raise Unavailable(operation, f"cannot reach {where}: {error}") from error
            # Not what the error says of itself: aiohttp's may repeat the request, token and all.
            raise LostReply(operation, f"{where} broke off ({type(error).__name__})") from error
        return Reply(status=response.status_code, body=response.content)


def _never_left(error: Exception) -> bool:
    """Whether the connection was not even made.

    The class of httpx-aiohttp's errors does not tell: it calls a reset in the middle of an answer ConnectTimeout, too.
    """
    return isinstance(error, httpx.UnsupportedProtocol) or isinstance(
        error.__cause__, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    )
