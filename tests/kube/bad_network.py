"""A network between client and API server that can stall, break and refuse; TLS passes through untouched."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_CHUNK = 65536


class BadNetwork:
    """A TCP proxy on a port of its own; start one with `bad_network`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._served: set[asyncio.Event] = set()
        self.connections = 0
        """How many there have been."""

    def stall(self) -> None:
        """Deliver nothing more, in neither direction, but keep every connection open."""
        self._flowing.clear()

    def flow(self) -> None:
        """Deliver what is waiting and what comes; accept connections."""
        self._flowing.set()
        self._refuses = False

    def refuse(self) -> None:
        """Break every connection and accept no new one."""
        self._refuses = True
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._served.add(served := asyncio.Event())
        if not self._refuses:
            with contextlib.suppress(ConnectionError):
                await self._join(reader, writer)
        await _close(writer)
        served.set()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._target)
        self._writers |= (ends := {writer, there_writer})
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(reader, there_writer))
            group.create_task(self._pump(there_reader, writer))
        self._writers -= ends
        await _close(there_writer)

    async def end(self) -> None:
        """Break every connection and wait until they are closed."""
        self.flow()
        self.refuse()
        for served in self._served:
            await served.wait()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def bad_network(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[BadNetwork, Path]]:
    """The proxy, and a kubeconfig that goes through it."""
    server = urlsplit(_config(kubeconfig)["clusters"][0]["cluster"]["server"])
    network = BadNetwork((str(server.hostname), int(server.port or 443)))
    proxy = await asyncio.start_server(network.serve, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with proxy:
        yield network, with_server(kubeconfig, url, folder / "through-bad-network.json")
        await network.end()


def with_server(kubeconfig: Path, url: str, copy: Path) -> Path:
    """A copy of a kubeconfig of the sandbox's that leads to another address."""
    config = _config(kubeconfig)
    config["clusters"][0]["cluster"]["server"] = url
    copy.write_text(json.dumps(config))
    return copy


def _config(kubeconfig: Path) -> Any:
    return json.loads(kubeconfig.read_text())
