"""What the sandbox's client asks an API server for."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from sandbox import kubeconfig, pki
from sandbox.api import Api
from slurmruntime.process.clock import SystemClock


class AskedServer(ThreadingHTTPServer):
    """Keeps the path and query of every request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[str] = []


class _Answer(BaseHTTPRequestHandler):
    server: AskedServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    @override
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[AskedServer]:
    with AskedServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def api(server: AskedServer, tmp_path: Path) -> Iterator[Api]:
    token = tmp_path / "token"
    token.write_text("t")
    config = kubeconfig.with_token_file(
        tmp_path / "kubeconfig",
        server=f"http://127.0.0.1:{server.server_port}",
        ca=pki.authority(SystemClock().now()).certificate,
        token_file=token,
    )
    with Api(config) as api:
        yield api


def test_a_query_reaches_the_server_however_it_is_given(api: Api, server: AskedServer) -> None:
    api.get("/slices", fieldSelector="spec.nodeName=a")
    api.get("/slices?fieldSelector=spec.nodeName%3Da")
    api.get("/slices?limit=1", fieldSelector="spec.nodeName=a")
    api.get("/slices")

    assert server.asked == [
        "/slices?fieldSelector=spec.nodeName%3Da",
        "/slices?fieldSelector=spec.nodeName%3Da",
        "/slices?limit=1&fieldSelector=spec.nodeName%3Da",
        "/slices",
    ]
