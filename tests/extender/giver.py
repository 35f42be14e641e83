"""A leader that gives devices, among its peers in memory."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
from typing_extensions import override

from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import profiles
from bridge.domain.model.claims.values import ResourceClaim
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube import decode
from bridge.kube.claims import resource_claims
from bridge.kube.claims.resource_claims import CLAIMS, CLASSES, ResourceClaims
from bridge.kube.claims.slices import SLICES
from bridge.kube.claims.templates import ClaimTemplates
from extender.claims.asking import Templates
from extender.claims.giving import Devices
from extender.claims.known import KnownClaims
from slurmruntime.kube import node_objects
from slurmruntime.kube.cache import Cache
from slurmruntime.values.ids import JobId, KubeNode, PodUid, SlurmNode
from tests import virtual_time
from tests.make import placing
from tests.make.apiserver import ApiServer, Manifest
from tests.make.devices import PROFILES, claiming, device_class, device_slice
from tests.make.manifests import running
from tests.make.slurm import Job, Slurm
from tests.make.slurm_nodes import Node
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock


class Asked(ApiServer):
    """Remembers what it was asked."""

    def __init__(self, clock: VirtualClock, trouble: Trouble, *caches: Cache[Any]) -> None:
        super().__init__(clock, trouble, *caches)
        self.asked: list[str] = []

    @override
    async def request(self, method: str, path: str, **said: Any) -> bytes:
        self.asked.append(f"{method} {path.rpartition('/v1/')[2]}")
        return await super().request(method, path, **said)


class AskedSlurm(Slurm):
    """The same."""

    def __init__(self, trouble: Trouble, jobs: list[Job], nodes: list[Node]) -> None:
        super().__init__(trouble, jobs, nodes)
        self.asked: list[str] = []

    @override
    async def call(self, label: str, *said: Any, **more: Any) -> Any:
        self.asked.append(label)
        return await super().call(label, *said, **more)


class Stage:
    """A leader that gives the one device of a node, whose cache of claims shows nothing at all."""

    def __init__(
        self, clock: VirtualClock, trouble: Trouble, *there: Manifest, devices: int = 1
    ) -> None:
        self.clock = clock
        self.slices = slices = Cache(SLICES)
        self.woken: list[PodUid] = []
        self.everyone = Cache(CLAIMS)
        self.classes = Cache(CLASSES)
        self.api = Asked(clock, trouble, slices)
        for manifest in (device_class(), device_slice(devices=devices), *there):
            self.api.create(manifest)
        self.kube_nodes = Cache(node_objects.NODES)
        self.kube_nodes.put(placing.kube_node("s1"))
        self.slurm = slurm = AskedSlurm(
            trouble,
            [
                *(running(number, gres="gpu:example:1(IDX:0)") for number in (1, 2)),
                running(3, gres=f"gpu:example:{devices}(IDX:0-{devices - 1})"),
            ],
            [Node(name="s1", gres=f"gpu:example:{devices}")],
        )
        claims = ResourceClaims(self.api)  # type: ignore[arg-type]  # all that is called
        self.gres: str | None = None
        """What the node had in Slurm when the nodes were last read."""
        known, its = KnownClaims(claims, self.everyone, self.classes), profiles.read(PROFILES)
        self.devices = Devices(
            known,
            slurm,  # type: ignore[arg-type]  # all that is called
            slices=slices,
            kube_nodes=self.kube_nodes,
            profiles=its,
            bridged=SimpleNamespace(gres=lambda _: self.gres),  # type: ignore[arg-type]  # all that is asked
            templates=Templates(known, ClaimTemplates(self.api), its, clock),  # type: ignore[arg-type]  # the same
            clock=clock,
            wake=self.woken.append,
        )

    def pod(self, name: str) -> Pod:
        return decode.pod(msgspec.json.encode(self.api.pods[name]))

    async def give(self, name: str, job: int, *, read: SlurmJob | None = None) -> None:
        """Give the pod of this name its own claim's device, for a job that has the node's only one.

        read: the job, as it was read.
        """
        action = Assign(
            job_id=JobId(job),
            sluid=None,
            slurm_node=SlurmNode("s1"),
            kube_node=KubeNode("s1"),
            grant="",
        )
        await self.devices.give(self.pod(name), action, read)

    def given(self) -> list[str]:
        """The claims that have a device."""
        found = self.api.of("ResourceClaim").items()
        return [name for name, each in found if each.get("status", {}).get("allocation")]

    def read(self, name: str, version: str = "") -> ResourceClaim:
        """A claim as it is, or at a later version."""
        found = self.api.of("ResourceClaim")[name]
        if version:
            found["metadata"]["resourceVersion"] = version
        return resource_claims.claim(msgspec.json.encode(found))


def staged(
    body: Callable[[Stage], Awaitable[None]],
    *there: Manifest,
    trouble: Trouble | None = None,
    devices: int = 1,
) -> None:
    pods = [claiming("one"), claiming("two")]

    async def main(clock: VirtualClock) -> None:
        stage = Stage(clock, trouble or Trouble(), *pods, *there, devices=devices)
        await clock.sleep(1)  # the watch of slices has told
        await body(stage)

    virtual_time.run(main)
