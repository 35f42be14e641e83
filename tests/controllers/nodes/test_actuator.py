"""What is done to a Kubernetes node that has changed since it was decided."""

from typing import Any

from bridge.domain import names
from bridge.domain.ids import KubeNode
from bridge.domain.nodes.actions import Uncordon
from bridge.kube.cache import Cache
from bridge.kube.decode import NODES
from bridge.kube.events import Reporter
from controllers.nodes.actuator import NodeHands
from tests import virtual_time
from tests.make.apiserver import ApiServer
from tests.make.manifests import kube_node
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock


def uncordoned(**notes: str) -> dict[str, Any]:
    """What is left of a cordoned node's specification once we have lifted our cordon."""

    async def main(clock: VirtualClock) -> dict[str, Any]:
        cache = Cache(NODES)
        api = ApiServer(clock, Trouble(), cache)
        api.create(kube_node(notes=notes, unschedulable=True))
        await clock.sleep(1)
        hands = NodeHands(
            kube=api,  # type: ignore[arg-type]  # all that is called
            slurm=None,  # type: ignore[arg-type]  # not asked for anything
            kube_nodes=cache,
            slurm_nodes=None,  # type: ignore[arg-type]  # nor this
            reporter=Reporter(controller="test", instance="test"),
            clock=clock,
        )
        assert await hands.act(Uncordon(kube_node=KubeNode("k1")))
        spec: dict[str, Any] = api.of("Node")["k1"].get("spec", {})
        return spec

    return virtual_time.run(main)


def test_a_cordon_of_ours_is_lifted() -> None:
    assert uncordoned(**{names.CORDON_ANNOTATION: "drained"}) == {}


def test_a_cordon_whose_mark_went_meanwhile_is_somebody_elses() -> None:
    assert uncordoned() == {"unschedulable": True}
