"""Whom our client of Slurm reaches from inside a pod: a program for namespaces of its own (`unshare --mount --net`).

A name server knows the site's slurmrestd, unless told that it is unknown, and a tenant's Service that has the same
name inside the cluster. Prints which of them got Slurm's token.
"""

import asyncio
import contextlib
import socketserver
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import inet_aton

from typing_extensions import override

from slurmclient.errors import SlurmError
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient

SITE, TENANT = "127.0.0.77", "127.0.0.66"
NAMES = {b"slurmrestd.hpc": SITE, b"slurmrestd.hpc.svc.cluster.local": TENANT}
PORT = 6820


class Resolver(socketserver.BaseRequestHandler):
    """A name server of the cluster (RFC 1035)."""

    @override
    def handle(self) -> None:
        query, connection = self.request
        labels, at = [], 12
        while length := query[at]:
            labels.append(query[at + 1 : at + 1 + length])
            at += 1 + length
        question, kind = query[12 : at + 5], query[at + 1 : at + 3]
        address = NAMES.get(b".".join(labels).lower())
        answers = bytes((0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)) + inet_aton(address or SITE)
        is_told = address is not None and kind == b"\0\1"
        head = b"\x81\x80" if address else b"\x81\x83"
        counts = bytes((0, 1, 0, is_told, 0, 0, 0, 0))
        reply = query[:2] + head + counts + question + (answers if is_told else b"")
        connection.sendto(reply, self.client_address)


class Listener(BaseHTTPRequestHandler):
    """Somebody who is asked as slurmrestd, and keeps what it is told."""

    def do_GET(self) -> None:
        if self.headers.get("X-SLURM-USER-TOKEN"):
            print(self.connection.getsockname()[0], flush=True)  # noqa: T201  # what is asked of it
        self.send_error(401)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


async def ask(url: str, token_file: Path) -> None:
    async with SlurmClient.open(url, token_file=token_file) as client:
        with contextlib.suppress(SlurmError):
            await client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)


def serve(server: socketserver.BaseServer) -> None:
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(resolv_conf: str, url: str, token_file: str, unknown: str) -> None:
    NAMES.pop(unknown.encode(), None)
    subprocess.run(("/usr/sbin/ip", "link", "set", "lo", "up"), check=True)
    subprocess.run(("/usr/bin/mount", "--bind", resolv_conf, "/etc/resolv.conf"), check=True)
    serve(socketserver.UDPServer(("127.0.0.1", 53), Resolver))
    for address in (SITE, TENANT):
        serve(ThreadingHTTPServer((address, PORT), Listener))
    asyncio.run(ask(url, Path(token_file)))


if __name__ == "__main__":
    main(*sys.argv[1:])
