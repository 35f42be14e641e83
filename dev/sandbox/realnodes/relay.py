"""Let the real nodes reach the API server, and slurmctld: from the bridge's address to the loopback ports.

    python -m sandbox.realnodes.relay ADDRESS PORT…

So the control plane listens beyond the loopback only through this relay, which ends with the sandbox.
"""

import asyncio
import contextlib
import sys

_CHUNK = 1 << 16


async def serve(address: str, port: int) -> None:
    """Relay every connection to the same port of the loopback, until cancelled."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            try:
                back, forth = await asyncio.open_connection("127.0.0.1", port)
            except OSError:  # the server is down: close this connection, too
                return
            with contextlib.closing(forth):
                await asyncio.gather(_pump(reader, forth), _pump(back, writer))

    server = await asyncio.start_server(relay, address, port)
    async with server:
        await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _serve_all(address: str, ports: list[int]) -> None:
    async with asyncio.TaskGroup() as serving:
        for port in ports:
            serving.create_task(serve(address, port))


if __name__ == "__main__":
    asyncio.run(_serve_all(sys.argv[1], [int(port) for port in sys.argv[2:]]))
