"""Connections that can read what slurmrestd says when it refuses.

Slurm 26.05 answers each refused request twice: its JSON, with `Connection: Close`, and in the same segment a second head
with the reason as text (src/common/http_con.c sends it when an operation returns an error). aiohttp's parser takes data
after the end for an attack and throws away both. So these connections end where the first answer ends.
"""

import asyncio
import functools
import ssl
import sys
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

_END_OF_HEAD: Final = b"\r\n\r\n"
_NO_END: Final = sys.maxsize


class FirstAnswer(ResponseHandler):
    """A connection that drops what comes after an answer that closes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._answer = _Answer()

    def set_response_params(self, **params: Any) -> None:
        """Expect the answer to the next request."""
        self._answer = _Answer()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Pass on what belongs to the answer."""
        super().data_received(self._answer.take(data))


def connector(*, limit: int, tls: ssl.SSLContext | None, socket: str = "") -> aiohttp.BaseConnector:
    """Return a pool of such connections, over TCP or to a unix socket."""
    pool: aiohttp.BaseConnector = (
        aiohttp.UnixConnector(socket, limit=limit)
        if socket
        else aiohttp.TCPConnector(limit=limit, ssl=tls if tls is not None else True)
    )
    # aiohttp has no public way to choose the protocol; without it every refusal is a parse error, and tests fail.
    factory = functools.partial(FirstAnswer, loop=asyncio.get_running_loop())
    pool._factory = factory  # type: ignore[assignment]  # noqa: SLF001  # partial is invariant; no public way
    return pool


class _Answer:
    """Counts the bytes of one answer."""

    def __init__(self) -> None:
        self._head = b""
        self._ends_at = 0
        """0 until the head is complete."""
        self._received = 0

    def take(self, data: bytes) -> bytes:
        """Return as much of the data as belongs to the answer."""
        if not self._ends_at:
            self._head += data
            self._ends_at = _end(self._head)
        allowed = self._ends_at - self._received if self._ends_at else len(data)
        self._received += len(data)
        return data[: max(allowed, 0)]


def _end(answer: bytes) -> int:
    """Return the length of an answer that closes the connection; 0 if that is not known yet."""
    head, end_of_head, _ = answer.partition(_END_OF_HEAD)
    if not end_of_head:
        return 0
    fields = dict(line.partition(b":")[::2] for line in head.lower().split(b"\r\n")[1:])
    length = fields.get(b"content-length", b"").strip()
    if fields.get(b"connection", b"").strip() != b"close" or not length.isdigit():
        return _NO_END
    return len(head) + len(end_of_head) + int(length)
