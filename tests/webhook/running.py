"""The webhook as a process of its own, with TLS, as it runs in a cluster."""

import random
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import yaml

from sandbox import ports
from tests.make.certificates import Authority, Pair
from tests.servers import wait_until

JSON = "application/json"


class Addresses(NamedTuple):
    """Where a process of its own answers."""

    url: str
    health_url: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A running one."""

    url: str
    health_url: str
    authority: Authority
    renewed: Pair
    """The certificate that has been on disk since it first answered."""
    folder: Path
    http: httpx.Client
    pid: int

    @property
    def trusting(self) -> ssl.SSLContext:
        """For connections of one's own."""
        return ssl.create_default_context(cadata=self.authority.certificate.decode())

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self.folder / "log").read_text()

    def post(self, path: str, body: bytes, content_type: str = JSON) -> httpx.Response:
        """Send a body as the API server would."""
        headers = {"Content-Type": content_type} if content_type else {}
        return self.http.post(f"{self.url}{path}?timeout=10s", content=body, headers=headers)

    def review(self, path: str, body: bytes) -> dict[str, Any]:
        """The `response` of a review that is answered."""
        answer = self.post(path, body)
        assert (200, JSON) == (answer.status_code, answer.headers["content-type"])
        document = answer.json()
        kind = (document["apiVersion"], document["kind"])
        assert ("admission.k8s.io/v1", "AdmissionReview") == kind
        response: dict[str, Any] = document["response"]
        return response


@contextmanager
def webhook_process(
    folder: Path, *arguments: str, cert_file: str, key_file: str, **settings: object
) -> Iterator[Addresses]:
    """Start one and wait until it is ready; at the end it must stop when told, with exit code 0."""
    port, health_port = ports.choose(("webhook", "health"), dice=random.Random()).values()  # noqa: S311  # no secret
    config = folder / "config.yaml"
    configured = {
        "server": {"listen": f"127.0.0.1:{port}", "cert_file": cert_file, "key_file": key_file},
        "health": {"listen": f"127.0.0.1:{health_port}"},
        "slurm": {"user": "kubernetes", "group": "kubernetes"},
        **settings,
    }
    config.write_text(yaml.safe_dump(configured))
    command = [sys.executable, "-m", "webhook", "--config", str(config), *arguments]
    with (
        (folder / "log").open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        running = Addresses(
            f"https://127.0.0.1:{port}", f"http://127.0.0.1:{health_port}", process.pid
        )
        try:
            wait_until(lambda: _is_ready(running, process, folder), 30)
            yield running
        finally:
            process.terminate()
            exit_code = process.wait(30)
        assert 0 == exit_code, (folder / "log").read_text()


@contextmanager
def running_webhook(folder: Path, *arguments: str, **settings: object) -> Iterator[Webhook]:
    """Start it with a client that trusts it; its certificate is replaced as soon as it answers."""
    authority = Authority()
    cert_file, key_file = authority.issue("webhook").write(folder, "webhook")
    trusting = ssl.create_default_context(cadata=authority.certificate.decode())
    given = settings or {
        "policy": {"rules": [{"name": "all", "user": "kubernetes", "nice": {"max": 10_000}}]}
    }
    with (
        webhook_process(
            folder, *arguments, cert_file=cert_file, key_file=key_file, **given
        ) as addresses,
        httpx.Client(
            verify=trusting, trust_env=False
        ) as http,  # closed first: it would be waited for
    ):
        renewed = authority.issue("webhook")
        http.get(addresses.url)
        renewed.write(folder, "webhook")
        yield Webhook(
            url=addresses.url,
            health_url=addresses.health_url,
            authority=authority,
            renewed=renewed,
            folder=folder,
            http=http,
            pid=addresses.pid,
        )


def _is_ready(running: Addresses, process: subprocess.Popen[bytes], folder: Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text()
    try:
        return httpx.get(f"{running.health_url}/readyz", trust_env=False).is_success
    except httpx.TransportError:
        return False
