"""A template that is gone before Kubernetes has made its claim is made again."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import profiles
from bridge.kube import decode
from bridge.kube.claims.resource_claims import CLAIMS, CLASSES, ResourceClaims
from bridge.kube.claims.slices import SLICES
from bridge.kube.claims.templates import ClaimTemplates
from bridge.reconcile.actuator import NotGiven
from extender.claims.asking import Templates
from extender.claims.giving import Devices
from extender.claims.known import KnownClaims
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.values.ids import JobId, KubeNode, SlurmNode
from tests import virtual_time
from tests.make.apiserver import ApiServer, Manifest
from tests.make.devices import PROFILES, by_class, device_class
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

ACTION = Assign(
    job_id=JobId(1), sluid=None, slurm_node=SlurmNode("s1"), kube_node=KubeNode("s1"), grant=""
)
NOT_MADE = "Kubernetes has not made the claim for slurm-bridge-0 yet"


def tried(
    waiting: Manifest, body: Callable[[ApiServer, Callable[[], Awaitable[str]]], Awaitable[None]]
) -> None:
    """Run a test with what gives devices to a pod; it returns why it does not."""

    async def main(clock: VirtualClock) -> None:
        api = ApiServer(clock, Trouble())
        for manifest in (device_class(), waiting):
            api.create(manifest)
        claims = ResourceClaims(api)  # type: ignore[arg-type]  # all that is called
        known, its = KnownClaims(claims, Cache(CLAIMS), Cache(CLASSES)), profiles.read(PROFILES)
        devices = Devices(
            known,
            None,  # type: ignore[arg-type]  # it is not asked
            slices=Cache(SLICES),
            kube_nodes=Cache(NODES),
            profiles=its,
            bridged=None,  # type: ignore[arg-type]  # nor this
            templates=Templates(known, ClaimTemplates(api), its, clock),  # type: ignore[arg-type]
            clock=clock,
            wake=lambda _: None,
        )
        (found,) = api.pods.values()
        pod = decode.pod(msgspec.json.encode(found))

        async def give() -> str:
            with pytest.raises(NotGiven) as refusal:
                await devices.give(pod, ACTION, None)
            return refusal.value.message

        await body(api, give)

    virtual_time.run(main)


def test_a_template_of_ours_is_made_again_and_once() -> None:
    async def body(api: ApiServer, give: Callable[[], Awaitable[str]]) -> None:
        for _ in range(2):
            assert NOT_MADE == await give()
        assert ["slurm-bridge-1-of-gpu"] == [
            each["metadata"]["name"] for each in api.of("ResourceClaimTemplate").values()
        ]

    tried(by_class("one"), body)


def test_the_pod_is_told_of_a_template_that_is_not_ours_to_make() -> None:
    other = by_class("one")
    other["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "mine"

    async def body(api: ApiServer, give: Callable[[], Awaitable[str]]) -> None:
        assert "there is no template mine to create a claim of the pod from" == await give()
        assert not api.of("ResourceClaimTemplate")

    tried(other, body)
