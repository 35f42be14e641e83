"""What is done to a Kubernetes node that has changed since it was decided."""

from typing import Any

from bridge.domain.nodes import state
from bridge.domain.nodes.actions import SetCondition, Uncordon
from controllers.nodes.actuator import NodeActuator, NodePeers
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.events import Reporter
from slurmruntime.kube.node_objects import NODES
from slurmruntime.model.nodes import NodeCondition
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode
from tests import virtual_time
from tests.make.apiserver import ApiServer
from tests.make.manifests import kube_node
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock


def hands(api: ApiServer, cache: Cache[Any], clock: VirtualClock) -> NodeActuator:
    peers = NodePeers(
        kube=api,  # type: ignore[arg-type]  # all that is called
        slurm=None,  # type: ignore[arg-type]  # not asked for anything
        responder=None,  # type: ignore[arg-type]  # nor this
        reporter=Reporter(controller="test", instance="test"),
    )
    return NodeActuator(peers, cache, None, clock=clock)  # type: ignore[arg-type]  # nor Slurm's nodes


def uncordoned(**notes: str) -> dict[str, Any]:
    """What is left of a cordoned node's specification once we have lifted our cordon."""

    async def main(clock: VirtualClock) -> dict[str, Any]:
        cache = Cache(NODES)
        api = ApiServer(clock, Trouble(), cache)
        api.create(kube_node(notes=notes, unschedulable=True))
        await clock.sleep(1)
        assert await hands(api, cache, clock).act(Uncordon(kube_node=KubeNode("k1")))
        spec: dict[str, Any] = api.of("Node")["k1"].get("spec", {})
        return spec

    return virtual_time.run(main)


def test_a_cordon_of_ours_is_lifted() -> None:
    assert uncordoned(**{names.CORDON_ANNOTATION: "drained"}) == {}


def test_a_cordon_whose_mark_went_meanwhile_is_somebody_elses() -> None:
    assert uncordoned() == {"unschedulable": True}


def events_of(*said: NodeCondition) -> list[tuple[str, str]]:
    """Types and reasons of the Events of a new node that these conditions were set on, one after the other."""

    async def main(clock: VirtualClock) -> list[tuple[str, str]]:
        cache = Cache(NODES)
        api = ApiServer(clock, Trouble(), cache)
        api.create(kube_node())
        await clock.sleep(1)
        for each in said:
            action = SetCondition(kube_node=KubeNode("k1"), condition=each)
            assert await hands(api, cache, clock).act(action)
        return [(event["type"], event["reason"]) for event in api.said]

    return virtual_time.run(main)


def in_slurm(reason: str = state.IN_SERVICE) -> NodeCondition:
    return NodeCondition(type=names.SLURM_STATE_CONDITION, status="True", reason=reason)


def test_a_node_that_is_in_service_from_the_first_look_on_has_no_event() -> None:
    assert [] == events_of(in_slurm(), in_slurm())


def test_a_node_that_is_in_slurm_but_not_as_wanted_has_one_from_the_first_look_on() -> None:
    missing = in_slurm("PartitionMissing")
    assert [("Warning", "PartitionMissing")] == events_of(missing, missing)
