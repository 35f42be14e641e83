"""A slurmrestd that answers with one long list."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from slurmruntime.slurm.client import SlurmClient

SLURM = {
    "meta": {"slurm": {"version": {"major": "26", "minor": "05", "micro": "5"}}},
    "pings": [],
    "errors": [],
}
LONGEST_LIST = ",".join(["node-0"] * 8500)
"""Nodes that one waiting job may exclude, as Slurm 26.05.5 takes and lists it."""


@asynccontextmanager
async def slurmrestd(
    folder: Path, list_key: str, pieces: Iterable[bytes]
) -> AsyncIterator[SlurmClient]:
    """One that answers with this list, and the product's own client of it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                if f"/{list_key}/".encode() not in path:
                    body = json.dumps(SLURM).encode()
                    writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    continue
                writer.write(head + b'Connection: close\r\n\r\n{"%s":[' % list_key.encode())
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                writer.write(b'{"name":"last"}],"errors":[],"last_update":{"set":true,"number":7}}')
                return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    (folder / "token").write_text("any")
    async with (
        server,
        SlurmClient.open(f"http://127.0.0.1:{port}", token_file=folder / "token") as it,
    ):
        yield it
