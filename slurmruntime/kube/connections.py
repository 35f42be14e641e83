"""Connections to the API server that take no answer for that to another request.

aiohttp leaves what comes on an idle connection to the next request that uses it. A proxy may say something there, such
as a page about a time-out, and then each answer would be taken for that to the request after its own.
"""

import asyncio
import functools
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

KEEP_ALIVE_S = 75
"""The API server closes idle connections after 90 s. We close first, so none breaks mid-request."""


class AskedOnly(ResponseHandler):
    """A connection that closes as soon as something comes that no request has asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._is_asked = self._has_answer = False

    @override
    def set_response_params(self, **params: Any) -> None:
        """Prepare for the answer to the next request."""
        self._is_asked, self._has_answer = True, False
        super().set_response_params(**params)

    @override
    def data_received(self, data: bytes) -> None:
        """Pass on the bytes of an answer."""
        is_complete = self._has_answer and (self._payload is None or self._payload.is_eof())
        if data and (is_complete or not self._is_asked):
            self.abort()
        else:
            super().data_received(data)

    @override
    def feed_data(self, data: Any, size: int = 0) -> None:
        """Note that the head of an answer has come; a provisional one is none."""
        self._has_answer = self._has_answer or data[0].code >= HTTPStatus.OK
        super().feed_data(data, size)


def connector(limit: int) -> aiohttp.TCPConnector:
    """Return a pool of such connections."""
    pool = aiohttp.TCPConnector(limit=limit, keepalive_timeout=KEEP_ALIVE_S)
    # aiohttp has no public way to choose the protocol. The tests fail if this stops working.
    factory = functools.partial(AskedOnly, loop=asyncio.get_running_loop())
    pool._factory = factory  # type: ignore[assignment]  # noqa: SLF001  # partial is invariant; no public way
    return pool
