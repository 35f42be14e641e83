"""A node that a running gang's job has given up: what the pods record says so, and they go."""

from dataclasses import replace

import pytest

from bridge.domain.lifecycle import breaker, released
from bridge.domain.lifecycle.actions import Cause, Evict
from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.make import lives as build
from tests.make.lives import actions

GRANTED = Grant(
    name="ring",
    user="alice",
    group="users",
    nodes=3,
    tasks=4,
    memory_mib_per_cpu=1,
    layout="s1*2,s2",
    also=(
        Grant(
            name="ring", user="alice", group="users", memory_mib_per_cpu=1, layout="s3", started_s=1
        ),
    ),
    started_s=1,
)


def member(rank: int | None, granted: Grant = GRANTED) -> Pod:
    notes = {
        names.GRANT_ANNOTATION: grant.encode(build.job().identity, granted),
        names.NODELIST_ANNOTATION: "k1,k2,k3",
    }
    if rank is not None:
        notes[names.RANK_ANNOTATION] = str(rank)
    pod = build.bound()
    return replace(pod, annotations={**pod.annotations, **notes})


def job(*nodes: str, phase: JobPhase = JobPhase.RUNNING) -> SlurmJob:
    return replace(build.job(phase), nodes=tuple(map(SlurmNode, nodes)))


@pytest.mark.parametrize(
    ("pod", "its", "node"),
    [
        pytest.param(member(2), job("s1"), "s2", id="given up"),
        pytest.param(member(3), job("s1"), "s3", id="another component's"),
        pytest.param(member(1), job("s1"), None, id="kept"),
        pytest.param(member(2), job("s1", "s2", "s3"), None, id="all are kept"),
        pytest.param(member(2), job("t1", "t2", "t3"), None, id="nodes have other names"),
        pytest.param(member(2), job(), None, id="nodes are not known"),
        pytest.param(member(None), job("s1"), None, id="no gang"),
        pytest.param(member(9), job("s1"), None, id="a rank that was never granted"),
        pytest.param(member(2), job("s1", phase=JobPhase.PAUSED), None, id="suspended"),
        pytest.param(member(2), job("s1", phase=JobPhase.ENDED), None, id="over"),
    ],
)
def test_a_node_was_given_up_if_it_was_granted_and_is_missing(
    pod: Pod, its: SlurmJob, node: str | None
) -> None:
    assert node == released.node_of(pod, its)


@pytest.mark.parametrize("pod", [build.placed(), build.bound()], ids=["placed", "bound"])
def test_its_pod_is_evicted_and_told_which(pod: Pod) -> None:
    facts = replace(build.facts(pod, job("s1")), released=SlurmNode("s2"))

    (evict,) = actions(facts)

    assert isinstance(evict, Evict)
    assert Cause.RELEASED is evict.cause
    assert "was made smaller while it ran and no longer holds node s2" in evict.message


def test_the_breaker_does_not_count_it_nor_hold_it_back() -> None:
    """Its user made the job smaller: so many pods as one likes would stay on nodes of others."""
    assert () == breaker.tally([(member(2), job("s1")), (member(0), job("s1"))], build.NOW).bereft

    facts = replace(
        build.facts(build.bound(), job("s1")), released=SlurmNode("s2"), evictions_held=True
    )
    (evict,) = actions(facts)
    assert isinstance(evict, Evict)
