"""Connections that can read slurmrestd's error responses.

Slurm 26.05 answers each rejected request twice: with JSON and `Connection: Close`, and in the same
segment with a second head that gives the reason as text (src/common/http_con.c sends it when an
operation returns an error). aiohttp's parser treats data after the end as an attack and discards
both, whatever the status. These connections therefore drop everything after the first response.
"""

import asyncio
import functools
import sys
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

_END_OF_HEAD: Final = b"\r\n\r\n"
_NO_END: Final = sys.maxsize


class FirstAnswer(ResponseHandler):
    """A connection that drops all data after a response that closes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._answer = _Answer()

    @override
    def set_response_params(self, **params: Any) -> None:
        """Expect the response to the next request."""
        self._answer = _Answer()
        super().set_response_params(**params)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(self._answer.take(data))


class Connector(aiohttp.TCPConnector):
    """A pool of `FirstAnswer` connections."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        # aiohttp has no public way to choose the protocol. Without this, every error response is a
        # parse error, and tests fail.
        self._factory = functools.partial(FirstAnswer, loop=self._loop)  # type: ignore[assignment]  # partial is invariant


class _Answer:
    """Finds the end of one response by counting its bytes."""

    def __init__(self) -> None:
        self._head = b""
        self._ends_at = 0
        """0 until the head is complete."""
        self._received = 0

    def take(self, data: bytes) -> bytes:
        """Return the part of the data that belongs to the response."""
        if not self._ends_at:
            self._head += data
            self._ends_at = _end(self._head)
        allowed = self._ends_at - self._received if self._ends_at else len(data)
        self._received += len(data)
        return data[: max(allowed, 0)]


def _end(answer: bytes) -> int:
    """Return the length of a response that closes the connection; 0 if it is not known yet."""
    head, end_of_head, _ = answer.partition(_END_OF_HEAD)
    if not end_of_head:
        return 0
    fields = dict(line.partition(b":")[::2] for line in head.lower().split(b"\r\n")[1:])
    length = fields.get(b"content-length", b"").strip()
    if fields.get(b"connection", b"").strip() != b"close" or not length.isdigit():
        return _NO_END
    return len(head) + len(end_of_head) + int(length)
