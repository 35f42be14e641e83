"""A running slurm-exporter with a web configuration; its Slurm is away."""

import os
import random
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from sandbox import ports
from tests.exporter.conftest import command
from tests.make.certificates import Authority

ROOT = Path(__file__).parents[2]
HASHED = "$2y$04$OcLLxTcFqPLrHj8nBUXWbu1RkNLMoN97K3DsNgawREZeKC.LHBfEG"
"""Of the password `secret`."""
TOKEN = "t" * 40
BEARERS = {"bearer_token_file": "token"}
FILES = 1024
"""What a service manager usually allows."""


class Door:
    """A running exporter, whose Slurm is away: the door does not depend on it."""

    def __init__(self, port: int, authority: Authority, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.authority = authority
        self.process = process

    def ask(
        self,
        path: str = "/metrics",
        *,
        own: tuple[str, str] | None = None,
        tls: bool = True,
        **headers: str,
    ) -> httpx.Response:
        context = self.trusting(own) if tls else False
        url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}{path}"
        return httpx.get(url, headers=headers, verify=context, timeout=5, trust_env=False)

    def trusting(self, own: tuple[str, str] | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.authority.certificate.decode())
        if own:
            context.load_cert_chain(*own)
        return context

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def files(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])

    def resident_mib(self) -> float:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def door(folder: Path, slurm: str = "http://127.0.0.1:9", /, **sections: object) -> Iterator[Door]:
    """An exporter with this web configuration; its certificate is in the folder."""
    authority = Authority()
    authority.issue("server").write(folder, "server")
    (folder / "ca.crt").write_bytes(authority.certificate)
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "web.yml").write_text(yaml.safe_dump(sections))
    port = ports.choose(["exporter"], dice=random.Random())["exporter"]  # noqa: S311  # a port
    words = command(f"--listen=127.0.0.1:{port}", f"--server={slurm}")
    web = [f"--web.config.file={folder / 'web.yml'}"] if sections else []
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ("/bin/sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *words, *web),
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{ROOT / 'client'}:{ROOT / 'exporter'}",
                "SLURM_JWT": "a.b.c",
            },
            stdout=log,
            stderr=log,
        )
    opened = Door(port, authority, process)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                opened.connect().close()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield opened
    finally:
        process.terminate()
        assert 0 == process.wait(10), (folder / "log").read_text()


TLS = {"cert_file": "server.crt", "key_file": "server.key"}
MUTUAL = {
    **TLS,
    "client_ca_file": "ca.crt",
    "client_auth_type": "RequireAndVerifyClientCert",
}
