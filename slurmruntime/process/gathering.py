"""Combine the writes to a connection: head and body of a response leave in one segment."""

import asyncio
from typing import Any

from typing_extensions import override


class GatheringTransport(asyncio.Transport):
    """Combines all writes of one loop iteration into one."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner = inner
        self._loop = loop
        self._gathered: list[bytes] = []

    @override
    def write(self, data: Any) -> None:
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(data)

    def _flush(self) -> None:
        data = b"".join(self._gathered)
        self._gathered.clear()
        if data and not self._inner.is_closing():
            self._inner.write(data)

    @override
    def close(self) -> None:
        self._flush()
        self._inner.close()

    @override
    def abort(self) -> None:
        self._gathered.clear()
        self._inner.abort()

    @override
    def is_closing(self) -> bool:
        return self._inner.is_closing()

    @override
    def pause_reading(self) -> None:
        self._inner.pause_reading()

    @override
    def resume_reading(self) -> None:
        self._inner.resume_reading()

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)
