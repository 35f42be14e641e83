"""What the controllers gather for a pod that has its node."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from typing_extensions import override

from bridge.domain.gang.decide import OpenCase
from bridge.domain.model.pods import Pod
from bridge.domain.observation.binding import Bindings
from bridge.reconcile.nodes import KubeNodes
from controllers.pods.side import Endings
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import SystemClock
from slurmruntime.values.ids import KubeNode, SlurmNode, WorkloadKey
from tests.make import lives as build

LARGE = replace(build.job(), nodes=tuple(SlurmNode(f"k{n}") for n in range(400)))


class CountedNodes(KubeNodes):
    """Counts how often a node is looked up by Slurm's name."""

    looked_up = 0

    @override
    def facts(self, slurm_node: SlurmNode) -> KubeNodeFacts | None:
        self.looked_up += 1
        return super().facts(slurm_node)


def nodes() -> CountedNodes:
    cache = Cache(NODES)
    for n in range(401):
        cache.put(KubeNodeFacts(name=KubeNode(f"k{n}"), uid=f"node-{n}", resource_version=str(n)))
    return CountedNodes(cache)


def endings(kube_nodes: KubeNodes) -> Endings:
    return Endings(
        kube_nodes,
        placeholders=SimpleNamespace(),  # type: ignore[arg-type]  # nothing is asked
        breaker=SimpleNamespace(holds=lambda: False),  # type: ignore[arg-type]  # all that is asked
        lookup=SimpleNamespace(forget=lambda _: None),  # type: ignore[arg-type]  # all that is asked
        restorer=SimpleNamespace(refusal=lambda _: None),  # type: ignore[arg-type]  # all that is asked
        bindings=Bindings(),
        clock=SystemClock(),
        enqueue_node=lambda _: None,
    )


def gathered(side: Endings, pod: Pod) -> KubeNode | None:
    case = OpenCase(pod=pod, view=build.view(LARGE), since=build.NOW, job=None)
    return side.gather(case, key=WorkloadKey("ring"), now=build.NOW).kube_node


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param("k7", "k7", id="its own, as the placeholder holds it"),
        pytest.param("k400", "k0", id="the first, as its own is not held"),
        pytest.param("gone", "k0", id="the first, as nobody knows its own"),
    ],
)
def test_the_node_that_counts_is(own: str, expected: str) -> None:
    side = endings(nodes())
    pod = replace(build.bound(), kube_node=KubeNode(own))
    assert KubeNode(expected) == gathered(side, pod)


def test_a_members_node_is_found_without_looking_at_all_nodes_of_its_gang() -> None:
    known = nodes()
    side = endings(known)
    for n in range(400):
        gathered(side, replace(build.bound(), kube_node=KubeNode(f"k{n}")))
    assert known.looked_up <= 3 * 400
