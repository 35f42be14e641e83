"""Connections that cope with slurmrestd's double answers.

Slurm 26.05 answers a refused request twice: first with JSON and `Connection: Close`, then, in the
same segment, with a second header and the reason as text (src/common/http_con.c sends it when an
operation returns an error). aiohttp's parser rejects data after the end of an answer and discards
both. Therefore these connections drop everything after the first answer.

aiohttp leaves what comes on an idle connection, such as a proxy's page about a time-out, to the next
request that uses it, and then each answer would be taken for that to the request after its own.
Therefore it closes the connection. Other clients on aiohttp may use `StrictConnection` for that alone.
"""

import asyncio
import functools
import re
import sys
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_NO_END: Final = sys.maxsize
_FIRST_FINAL: Final = 200
"""The lowest status of an answer that is the last to its request."""


class StrictConnection(ResponseHandler):
    """A connection that closes as soon as something comes that no request has asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._is_asked = self._has_answer = False

    def set_response_params(self, **params: Any) -> None:
        """Prepare for the answer to the next request."""
        self._is_asked, self._has_answer = True, False
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Pass on the bytes of an answer."""
        is_complete = self._has_answer and (self._payload is None or self._payload.is_eof())
        if data and (is_complete or not self._is_asked):
            self.abort()
        else:
            super().data_received(data)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Note that the head of an answer has come; a provisional one is none."""
        self._has_answer = self._has_answer or data[0].code >= _FIRST_FINAL
        super().feed_data(data, size)


class FirstAnswer(StrictConnection):
    """One that also drops the bytes after an answer with `Connection: Close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._answer = _Answer()

    def set_response_params(self, **params: Any) -> None:
        """Prepare for the answer to the next request."""
        self._answer = _Answer()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Pass on the bytes that belong to the answer."""
        super().data_received(self._answer.take(data))


def connector(*, limit: int, socket: str = "") -> aiohttp.BaseConnector:
    """Return a pool of connections to slurmrestd, over TCP or to a unix socket at a path."""
    pool: aiohttp.BaseConnector = (
        aiohttp.UnixConnector(socket, limit=limit) if socket else aiohttp.TCPConnector(limit=limit)
    )
    fill(pool, FirstAnswer)
    return pool


def fill(pool: aiohttp.BaseConnector, connection: type[StrictConnection]) -> None:
    """Have a pool open connections of this class only."""
    # aiohttp has no public way to choose the protocol. The tests fail if this stops working.
    factory = functools.partial(connection, loop=asyncio.get_running_loop())
    pool._factory = factory  # type: ignore[assignment]  # noqa: SLF001  # partial is invariant; no public way


class _Answer:
    """Counts the bytes of one answer."""

    def __init__(self) -> None:
        self._head = b""
        self._ends_at = 0
        """The number of bytes of the answer; 0 until the header is complete."""
        self._received = 0

    def take(self, data: bytes) -> bytes:
        """Return the part of the data that belongs to the answer."""
        if not self._ends_at:
            self._head += data
            self._ends_at = _end(self._head)
        allowed = self._ends_at - self._received if self._ends_at else len(data)
        self._received += len(data)
        return data[: max(allowed, 0)]


def _end(answer: bytes) -> int:
    """Return the length of an answer that closes the connection.

    0 if the header is incomplete; `_NO_END` if the answer keeps the connection open, or does not
    declare its length.
    """
    head, end_of_head, _ = answer.partition(_END_OF_HEAD)
    if not end_of_head:
        return 0
    fields = dict(line.partition(b":")[::2] for line in head.lower().split(b"\r\n")[1:])
    length = fields.get(b"content-length", b"").strip()
    if fields.get(b"connection", b"").strip() != b"close" or not _LENGTH.fullmatch(length):
        return _NO_END
    return len(head) + len(end_of_head) + int(length)
