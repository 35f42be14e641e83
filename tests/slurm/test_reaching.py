"""The Slurm of a Controller object, as its objects say: a real slurmrestd, and tokens that a real slurmctld judges."""

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridge.slurm import nodes
from sandbox.client import Sandbox
from slurmclient.errors import Unauthorized, Unavailable
from slurmruntime.endpoints import opening
from slurmruntime.endpoints.finding import ControllerName
from slurmruntime.kube.errors import NotFound
from slurmruntime.process import pki
from slurmruntime.process.clock import SystemClock
from slurmruntime.slurm.client import SlurmClient

SITE = ControllerName("slurm", "site")
HOST = "one-restapi.slurm.svc"


class Objects:
    """The API server, as far as it is asked."""

    def __init__(self, key: bytes, port: int, trusted: bytes = b"") -> None:
        """trusted: the CAs of a slurmrestd that speaks TLS; b"" for one that does not."""
        self.key = key
        self.port = port
        self.trusted = trusted
        self.replicas = 1

    async def request(self, method: str, path: str) -> bytes:
        named = {"name": "keys", "key": "jwt.key"}
        rest_api = {
            "controllerRef": {"name": "site"},
            "replicas": self.replicas,
            "service": {"port": self.port},
        }
        marks = {} if self.trusted else {"slurm-bridge.dev/tls": "off"}
        found: dict[str, Any] = {
            "controllers/site": {"spec": {"jwtKeyRef": named}},
            "secrets/keys": {"data": {"jwt.key": base64.b64encode(self.key).decode()}},
            "slurm/restapis": {
                "items": [{"metadata": {"name": "one", "annotations": marks}, "spec": rest_api}]
            },
            "configmaps/one-restapi-tls": {"data": {"ca.crt": self.trusted.decode()}},
        }
        for end, body in found.items():
            if path.endswith(end):
                return msgspec.json.encode(body)
        raise NotFound(method, path, message="not there")


def opened(objects: Objects) -> contextlib.AbstractAsyncContextManager[SlurmClient]:
    return opening.of_controller(
        SITE,
        objects,  # type: ignore[arg-type]  # all it calls
        SystemClock(),
        connections=2,
        timeout_s=10,
        on_call=lambda *_: None,
    )


@pytest.fixture(autouse=True)
def _a_name_as_in_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve the Service's name, which only a cluster's DNS knows."""
    real = socket.getaddrinfo

    def here(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if host == HOST else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", here)


async def test_it_is_found_and_takes_the_tokens_that_its_own_key_signs(slurm: Sandbox) -> None:
    key = (slurm.instance.slurm / "jwt.key").read_bytes()
    objects = Objects(b"not the key of this Slurm at all", slurm.instance.ports["slurmrestd"])
    async with opened(objects) as client:
        with pytest.raises(Unauthorized):
            await nodes.listing(client)
        objects.key = key
        assert (await nodes.refresh(client, None)).as_of > 0


async def test_without_a_rest_api_nothing_is_sent_and_one_that_comes_is_found(
    slurm: Sandbox,
) -> None:
    key = (slurm.instance.slurm / "jwt.key").read_bytes()
    objects = Objects(key, slurm.instance.ports["slurmrestd"])
    objects.replicas = 0
    async with opened(objects) as client:
        with pytest.raises(Unavailable, match="slurm/site has no RestApi"):
            await nodes.listing(client)
        objects.replicas = 1
        assert (await nodes.refresh(client, None)).as_of > 0


@contextlib.asynccontextmanager
async def in_tls(pair: pki.Pair, port: int, folder: Path) -> AsyncIterator[int]:
    """What speaks TLS before slurmrestd; yields its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (folder / "pair").write_bytes(pair.key + pair.certificate)
    context.load_cert_chain(folder / "pair")

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while piece := await reader.read(1 << 16):
                writer.write(piece)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(reader, behind[1]))
            group.create_task(pass_on(behind[0], writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_it_is_asked_by_tls_and_only_if_a_ca_of_its_own_vouches_for_it(
    slurm: Sandbox, tmp_path: Path
) -> None:
    key = (slurm.instance.slurm / "jwt.key").read_bytes()
    now, day = SystemClock().now(), timedelta(days=1)
    one, other = (pki.make_authority(name, now=now, lifetime=day) for name in ("one", "other"))
    pair = pki.issue(
        one, name="server", hosts=frozenset({HOST}), is_client=False, now=now, lifetime=day
    )
    async with in_tls(pair, slurm.instance.ports["slurmrestd"], tmp_path) as port:
        objects = Objects(key, port, other.certificate)
        async with opened(objects) as client:
            with pytest.raises(Unavailable, match="certificate verify failed"):
                await nodes.listing(client)
            objects.trusted = other.certificate + one.certificate
            assert (await nodes.refresh(client, None)).as_of > 0
