"""Accept connections: a client that never finishes a TLS handshake keeps no other out, and costs little."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

MOST_HANDSHAKES = 256
HANDSHAKE_S = 5.0
"""Handshakes under way at once, and the longest time of each."""

_NO_FILES_S = 0.1


class Door:
    """Accepts connections and shakes hands; beyond `MOST_HANDSHAKES`, the oldest handshake ends for each new one."""

    def __init__(
        self, sock: socket.socket, opens: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        self._sock = sock
        self._opens = opens
        self._tls = tls
        self._opening: dict[asyncio.Task[None], None] = {}

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(self._sock)
                except OSError:  # no file descriptor is left, or the caller has gone
                    await asyncio.sleep(_NO_FILES_S)
                    continue
                if len(self._opening) >= MOST_HANDSHAKES:
                    oldest = next(iter(self._opening))
                    del self._opening[oldest]
                    oldest.cancel()
                task = loop.create_task(self._open(connection))
                self._opening[task] = None
                task.add_done_callback(self._opened)
                # Accepting from a queue does not pause by itself, and those just accepted have to begin.
                await asyncio.sleep(0)
        finally:
            for task in self._opening:
                task.cancel()

    async def _open(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        limit_s = HANDSHAKE_S if self._tls else None
        with contextlib.suppress(OSError, TimeoutError):  # no handshake, or none that we understand
            await loop.connect_accepted_socket(
                self._opens, connection, ssl=self._tls, ssl_handshake_timeout=limit_s
            )

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening.pop(task, None)
