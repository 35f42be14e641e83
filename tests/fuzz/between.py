"""Somebody between us and slurmrestd or the API server, who says whatever a test likes; and our own clients."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from slurmclient.watching import listing
from slurmruntime.kube.client import KubeClient
from slurmruntime.slurm.client import SlurmClient

TOKEN = "a-token-that-nobody-else-may-see"  # noqa: S105  # of nobody
TIMEOUT_S = 1.0
PING = {
    "meta": {"slurm": {"version": {"major": "26", "minor": "05", "micro": "5"}}},
    "pings": [],
    "jobs": [],
    "errors": [],
}
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

Pieces = Iterable[bytes | float]
"""Bytes to send, and seconds to wait."""
Ask = Callable[[], Any]


def whole(body: bytes, extra: bytes = b"", status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\n" + extra
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Peer:
    """Says whatever it likes to whoever asks."""

    def __init__(self, answer: Callable[[bytes], Pieces]) -> None:
        self._answer = answer
        self.asked: list[bytes] = []
        self.port = 0
        self.writer: asyncio.StreamWriter | None = None
        """Of the newest connection."""
        self.speaking: set[asyncio.Task[Any] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.speaking.add(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(head)
                for piece in self._answer(head):
                    if isinstance(piece, bytes):
                        writer.write(piece)
                        await writer.drain()
                    else:
                        await asyncio.sleep(piece)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def between(answer: Callable[[bytes], Pieces]) -> AsyncIterator[Peer]:
    peer = Peer(answer)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        for speaking in filter(None, peer.speaking):
            speaking.cancel()
        await asyncio.gather(*filter(None, peer.speaking))


@asynccontextmanager
async def asking(kind: str, port: int) -> AsyncIterator[Ask]:
    """The product's own client of slurmrestd or of the API server, and a question that it asks."""
    url = f"http://localhost:{port}"
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(TOKEN if kind == "slurmrestd" else json.dumps(kubeconfig(url)))
        file.flush()
        if kind == "slurmrestd":
            opened = SlurmClient.open(url, token_file=file.name, request_timeout_s=TIMEOUT_S)
            async with opened as slurm:
                yield lambda: listing.all_jobs(slurm)
            return
        timeout_s = TIMEOUT_S
        async with KubeClient.open(
            file.name, request_timeout_s=timeout_s, user_agent="test"
        ) as kube:
            yield lambda: kube.request("GET", "/api/v1/pods")


def kubeconfig(server: str) -> object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
