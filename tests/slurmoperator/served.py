"""The control plane's loop on a real API server, one look at a time."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bridge.reconcile.set_aside import SetAside
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmoperator.daemons.acting import KeySource
from slurmoperator.daemons.loop import ControlLoop
from slurmoperator.daemons.part import PARTS, ControlPeers, PartCaches, WatchedPart
from slurmoperator.keys import host_keys
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.rendering.site import ControlSite, NamespaceScope, SlurmImages
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Unavailable
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from tests.make.processes import process
from tests.slurmoperator.examples import BY_NAME, manifest, path

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("Controller", "Accounting", "RestApi", "LoginSet", "Token", "NodeSet")
DEADLINE_S = 90.0
NO_IMAGES = SlurmImages(slurmctld="", slurmd="", slurmdbd="", slurmrestd="", login="")
WRITES = ("POST", "PATCH", "PUT", "DELETE")
APPS = "/apis/apps/v1"
PLAIN: dict[str, Any] = {"accountingRef": ..., "prologScriptRefs": ...}


def answers(admin: Api, where: str) -> bool:
    try:
        return bool(admin.get(where))
    except ApiError:
        return False


def secret(served: Sandbox, namespace: str, name: str, **data: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {key.replace("_", "."): each for key, each in data.items()},
    }
    served.admin.create(f"/api/v1/namespaces/{namespace}/secrets", body)


@asynccontextmanager
async def _no_slurm(controller: str) -> AsyncIterator[SlurmClient]:
    raise Unavailable("GET", controller, message="it has no RestApi")
    yield


class World:
    """The loop, and caches that are as new as its next look."""

    def __init__(self, client: KubeClient, admin: Api, namespace: str, calls: list[str]) -> None:
        self._client = client
        self.admin = admin
        self.namespace = namespace
        self.calls = calls
        clock, metrics = SystemClock(), Metrics("test")
        set_aside = SetAside(metrics, clock)
        self._parts: dict[str, Cache[WatchedPart]] = {
            kind: Cache(watched, set_aside) for kind, watched in PARTS.items()
        }
        self._loop = ControlLoop(
            ControlPeers(kube=client, slurms=_no_slurm, tried=ConfTrials()),
            PartCaches(
                parts=self._parts,
                workloads=(),
                node_sets=Cache[WatchedNodeSet](NODE_SETS, set_aside),
            ),
            ControlSite(images=NO_IMAGES),
            keys=KeySource(random_bytes=bytes, host_keys=host_keys.generate),
            served=NamespaceScope(),
            tokens=TokenPolicy(users={namespace: "alice"}, longest_s=86_400),
            process=process(clock, metrics, set_aside),
        )

    def create(self, kind: str, **spec: Any) -> None:
        made = manifest(kind, **spec)
        made["metadata"]["namespace"] = self.namespace
        self.admin.create(path(BY_NAME[kind], self.namespace), made)

    def change(self, kind: str, body: Mapping[str, Any]) -> None:
        self.admin.patch(path(BY_NAME[kind], self.namespace, "site"), body)

    async def look(self, kind: str) -> list[str]:
        """Look at the object, and return the writes that this took, without Events."""
        for each, cache in self._parts.items():
            for item in self.admin.get(path(BY_NAME[each], self.namespace))["items"]:
                cache.put_listed(PARTS[each].read(msgspec.json.encode(item)))
        uid = self.admin.get(path(BY_NAME[kind], self.namespace, "site"))["metadata"]["uid"]
        self.calls.clear()
        await self._loop.reconcile(uid)
        return [call for call in self.calls if call.startswith(WRITES) and call != "POST events"]

    def told(self, kind: str, condition: str) -> tuple[str, str, str]:
        status = self.admin.get(path(BY_NAME[kind], self.namespace, "site"))["status"]
        found = next(each for each in status["conditions"] if each["type"] == condition)
        return found["status"], found["reason"], found.get("message", "")

    def get(self, where: str, api: str = "/api/v1") -> Any:
        return self.admin.get(f"{api}/namespaces/{self.namespace}/{where}")


@asynccontextmanager
async def world(served: Sandbox, namespace: str) -> AsyncIterator[World]:
    calls: list[str] = []
    async with KubeClient.open(
        str(served.kubeconfig),
        request_timeout_s=10,
        user_agent="slurm-bridge-operator/1",
        on_call=lambda operation, *_: calls.append(operation),
    ) as client:
        yield World(client, served.admin, namespace, calls)
