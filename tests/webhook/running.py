"""The webhook as a process of its own, with TLS, as it runs in a cluster."""

import random
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from sandbox import ports
from tests.runtime.certificates import Authority, Pair
from tests.servers import wait_until

JSON = "application/json"


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
    process: subprocess.Popen[bytes]

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
def running_webhook(folder: Path) -> Iterator[Webhook]:
    """Start it and wait until it answers; at the end it must stop when told, with exit code 0."""
    authority = Authority()
    cert_file, key_file = authority.issue("webhook").write(folder, "webhook")
    port, health_port = ports.choose(("webhook", "health"), dice=random.Random()).values()  # noqa: S311  # no secret
    settings = {
        "webhook": {"listen": f"127.0.0.1:{port}", "cert_file": cert_file, "key_file": key_file},
        "health": {"listen": f"127.0.0.1:{health_port}"},
        "placement": {"allowed_fields": ["nice"]},
        "log": {"format": "json"},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    trusting = ssl.create_default_context(cadata=authority.certificate.decode())
    command = [sys.executable, "-m", "webhook", "--config", str(config)]
    with (
        (folder / "log").open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
        httpx.Client(verify=trusting, trust_env=False) as http,
    ):
        running = Webhook(
            url=f"https://127.0.0.1:{port}",
            health_url=f"http://127.0.0.1:{health_port}",
            authority=authority,
            renewed=authority.issue("webhook"),
            folder=folder,
            http=http,
            process=process,
        )
        try:
            wait_until(lambda: _answers(running), 30)
            running.renewed.write(folder, "webhook")
            yield running
        finally:
            http.close()  # an open connection would be waited for
            process.terminate()
            exit_code = process.wait(30)
        assert 0 == exit_code, running.log


def _answers(running: Webhook) -> bool:
    assert running.process.poll() is None, running.log
    try:
        return running.http.get(f"{running.health_url}/readyz").is_success and bool(
            running.http.get(running.url)
        )
    except httpx.TransportError:
        return False
