"""Whether the pods of a gang fit beside each other on the node that Slurm gave them, and how much work that is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model import demand
from bridge.domain.model.allocation import TaskShare
from bridge.domain.model.demand import Resources
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube.decode import BOUND_PODS, PODS
from bridge.reconcile.nodes import KubeNodes
from extender.nodes import BridgedNodes, Sharing
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode
from tests.make import gangs, lives, placing
from tests.make.visits import CountedUid, visits
from tests.virtual_time import VirtualClock


def bridged(
    *,
    cpus: int,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    pods_there: Sequence[Pod] = (),
    job: SlurmJob | None = None,
    sharing: Sharing = Sharing(rule=HybridRule.ACCEPT_OVERLAP),  # noqa: B008  # a value
) -> BridgedNodes:
    """Kubernetes has one node, and nobody on it but these pods of one core, all of this job."""
    kube_nodes = Cache(NODES)
    kube_nodes.put(placing.kube_node("n1", cpus=cpus, pods=pods, labels=labels))
    ours = Cache(PODS)
    for pod in pods_there:
        ours.put(replace(pod, kube_node=KubeNode("n1"), demand=placing.demands("1", "256Mi")))
    return BridgedNodes(
        None,  # type: ignore[arg-type]  # Slurm is not asked
        cluster=placing.CLUSTER,
        mirror=SimpleNamespace(pods=ours, kube_nodes=kube_nodes, bound=Cache(BOUND_PODS)),  # type: ignore[arg-type]  # all that is asked
        placeholders=SimpleNamespace(job=lambda _: job),  # type: ignore[arg-type]  # all that is asked
        gpu_resources={"nvidia.com/gpu": "gpu"},
        resources={},
        milli_per_cpu=1000,
        sharing=sharing,
        clock=VirtualClock(),
    )


def of_one_core(name: str, size: int, *, port: int | None = None) -> Pod:
    ports = () if port is None else (("TCP", port, "0.0.0.0"),)  # noqa: S104  # a value to compare with
    pod = gangs.waiting(name, size)
    return replace(pod, demand=placing.demands("1", "256Mi"), host_ports=ports)


def found_of(members: list[Pod], there: BridgedNodes) -> list[Fit]:
    """Have the product seat them on the one node, and ask about each."""
    size = len(members)
    given = gangs.job(JobPhase.RUNNING, *members, tasks=size)
    here = SlurmNode("n1")
    job = replace(given, nodes=(here,), shares=(TaskShare(node=here, tasks=size),))
    looks = gangs.plan(members, job).open_cases
    assert size == len([look for look in looks if look.seat])
    return [there.check(look.pod, job, KubeNode("n1"), look.beside).fit for look in looks]


@pytest.mark.parametrize(
    ("there", "port", "expected"),
    [
        (bridged(cpus=3), None, [Fit.FITS] * 3),
        (bridged(cpus=2), None, [Fit.FITS, Fit.FITS, Fit.MISFIT]),
        (bridged(cpus=3, pods=1), None, [Fit.FITS, Fit.MISFIT, Fit.MISFIT]),
        (bridged(cpus=3), 80, [Fit.FITS, Fit.MISFIT, Fit.MISFIT]),
    ],
    ids=["room for all", "CPUs for two", "one pod at most", "one port for all"],
)
def test_each_member_is_seen_beside_those_before_it(
    there: BridgedNodes, port: int | None, expected: list[Fit]
) -> None:
    members = [of_one_core(name, 3, port=port) for name in "abc"]
    assert expected == found_of(members, there)


def test_a_node_that_became_hybrid_with_a_static_cpu_manager_meanwhile_takes_no_guaranteed_pod() -> (
    None
):
    labels = {names.HYBRID_NODE_LABEL: "true", names.CPU_MANAGER_LABEL: "static"}
    there, guaranteed = bridged(cpus=3, labels=labels), {"cpu": "1", "memory": "256Mi"}
    member = replace(of_one_core("a", 1), demand=demand.of([Resources(guaranteed, guaranteed)]))

    assert [Fit.FITS] == found_of([member], bridged(cpus=3))
    assert [Fit.MISFIT] == found_of([member], there)
    assert [Fit.FITS] == found_of([of_one_core("a", 1)], there)


QUESTIONS: Any = SimpleNamespace(asked_at=lives.NOW)


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        pytest.param(Sharing(rule=HybridRule.NONE), Fit.MISFIT, id="no answer"),
        pytest.param(Sharing(rule=HybridRule.ALTERNATE), Fit.UNHELD, id="not known yet"),
        pytest.param(Sharing(rule=HybridRule.ESCROW), Fit.UNHELD, id="nobody asks"),
        pytest.param(
            Sharing(rule=HybridRule.ESCROW, questions=QUESTIONS), Fit.FITS, id="the script asks"
        ),
        pytest.param(Sharing(rule=HybridRule.ACCEPT_OVERLAP), Fit.FITS, id="accepted"),
    ],
)
def test_a_job_that_has_begun_on_a_hybrid_node_is_looked_at_again(
    sharing: Sharing, expected: Fit
) -> None:
    """It may be from before the answer, or have been changed while it waited."""
    hybrid = bridged(cpus=3, labels={names.HYBRID_NODE_LABEL: "true"}, sharing=sharing)

    assert [Fit.FITS] == found_of([of_one_core("a", 1)], bridged(cpus=3, sharing=sharing))
    assert [expected] == found_of([of_one_core("a", 1)], hybrid)


@pytest.mark.parametrize(
    ("deleting", "expected"),
    [
        pytest.param(False, Fit.OUTLIVED, id="nobody evicts it"),
        pytest.param(True, Fit.TERMINATING, id="it goes"),
    ],
)
def test_a_pod_whose_job_has_ended_is_in_the_way_until_it_is_gone(
    deleting: bool, expected: Fit
) -> None:
    old = lives.bound()
    ended = lives.ended(JobEnd.NODE_FAIL)
    there = bridged(cpus=1, pods_there=[lives.deleting(old) if deleting else old], job=ended)
    new = of_one_core("new", 1)

    assert [expected] == found_of([new], there)


def test_a_nodes_place_in_the_topology_is_what_its_annotation_says() -> None:
    cache = Cache(NODES)
    labels, notes = {names.SLURM_NODE_NAME_LABEL: "s1"}, {names.TOPOLOGY_ANNOTATION: "t:s0"}
    cache.put(placing.kube_node("k1", labels=labels, annotations=notes))
    cache.put(placing.kube_node("k2"))
    known = KubeNodes(cache)

    assert ["t:s0", "", ""] == [known.topology(SlurmNode(name)) for name in ("s1", "k2", "k1")]


def test_what_many_members_on_one_node_cost_is_in_proportion_to_their_number() -> None:
    """Four times the members; quadratic work would be sixteen times as much."""

    def work(size: int) -> int:
        members = [of_one_core(f"m-{rank}", size) for rank in range(size)]
        return visits(lambda: found_of(members, bridged(cpus=size)))

    assert work(160) < 4.3 * work(40)


def test_a_look_costs_the_same_however_many_nodes_the_job_has() -> None:
    """A gang of thousands is looked at pod by pod."""
    pod = of_one_core("m-0", 1)
    there = bridged(cpus=1)

    def work(size: int) -> int:
        given = gangs.job(JobPhase.RUNNING, pod, tasks=1)
        job = replace(
            given, nodes=tuple(SlurmNode(CountedUid(f"n{number}")) for number in range(1, size + 1))
        )
        return visits(lambda: there.check(pod, job, KubeNode("n1")))

    assert work(400) == work(4)
