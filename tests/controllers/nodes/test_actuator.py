"""What is done to a Kubernetes node that has changed since it was decided."""

from typing import Any, Literal

import pytest

from bridge.domain.nodes.actions import SetCondition, Uncordon
from controllers.nodes.actuator import NodeActuator, NodePeers
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.model.nodes import NodeCondition
from slurmruntime.process.events import EventRecorder, Reporter
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
        events=EventRecorder(
            kube=api,  # type: ignore[arg-type]  # all that is called
            reporter=Reporter(controller="test", instance="test"),
            clock=clock,
        ),
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


def events_of(action: SetCondition) -> list[tuple[str, str]]:
    """Types and reasons of the Events when this condition is set on a new node."""

    async def main(clock: VirtualClock) -> list[tuple[str, str]]:
        cache = Cache(NODES)
        api = ApiServer(clock, Trouble(), cache)
        api.create(kube_node())
        await clock.sleep(1)
        assert await hands(api, cache, clock).act(action)
        return [(event["type"], event["reason"]) for event in api.said]

    return virtual_time.run(main)


@pytest.mark.parametrize(
    ("event", "expected"),
    [("", []), ("Normal", [("Normal", "Drained")]), ("Warning", [("Warning", "Drained")])],
)
def test_an_event_tells_of_a_condition_where_the_plan_says_so(
    event: Literal["", "Normal", "Warning"], expected: list[tuple[str, str]]
) -> None:
    condition = NodeCondition(type=names.SLURM_STATE_CONDITION, status="False", reason="Drained")
    action = SetCondition(kube_node=KubeNode("k1"), condition=condition, event=event)

    assert expected == events_of(action)
