"""The Slurm of a Controller object, as its objects say: a real slurmrestd, and tokens that a real slurmctld judges."""

import base64
import socket
from typing import Any

import msgspec
import pytest

from bridge.kube.errors import NotFound
from bridge.process.clock import SystemClock
from bridge.reconcile.reaching import opening
from bridge.reconcile.reaching.finding import ControllerName
from bridge.slurm import nodes
from bridge.slurm.errors import Unauthorized, Unavailable
from sandbox.client import Sandbox
from slurmclient import Tls

SITE = ControllerName("slurm", "site")
HOST = "one-restapi.slurm.svc"


class Objects:
    """The API server, as far as it is asked."""

    def __init__(self, key: bytes, port: int) -> None:
        self.key = key
        self.port = port
        self.replicas = 1

    async def request(self, method: str, path: str) -> bytes:
        named = {"name": "keys", "key": "jwt.key"}
        rest_api = {
            "controllerRef": {"name": "site"},
            "replicas": self.replicas,
            "service": {"port": self.port},
        }
        found: dict[str, Any] = {
            "controllers/site": {"spec": {"jwtKeyRef": named}},
            "secrets/keys": {"data": {"jwt.key": base64.b64encode(self.key).decode()}},
            "slurm/restapis": {"items": [{"metadata": {"name": "one"}, "spec": rest_api}]},
        }
        for end, body in found.items():
            if path.endswith(end):
                return msgspec.json.encode(body)
        raise NotFound(method, path, message="not there")


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
    async with opening.of_controller(
        SITE,
        objects,  # type: ignore[arg-type]  # all it calls
        SystemClock(),
        tls=Tls(),
        connections=2,
        timeout_s=10,
        on_call=lambda *_: None,
    ) as client:
        with pytest.raises(Unauthorized):
            await nodes.listing(client)
        objects.key = key
        assert (await nodes.renewed(client, None)).as_of > 0


async def test_without_a_rest_api_nothing_is_sent_and_one_that_comes_is_found(
    slurm: Sandbox,
) -> None:
    key = (slurm.instance.slurm / "jwt.key").read_bytes()
    objects = Objects(key, slurm.instance.ports["slurmrestd"])
    objects.replicas = 0
    async with opening.of_controller(
        SITE,
        objects,  # type: ignore[arg-type]  # all it calls
        SystemClock(),
        tls=Tls(),
        connections=2,
        timeout_s=10,
        on_call=lambda *_: None,
    ) as client:
        with pytest.raises(Unavailable, match="slurm/site has no RestApi"):
            await nodes.listing(client)
        objects.replicas = 1
        assert (await nodes.renewed(client, None)).as_of > 0
