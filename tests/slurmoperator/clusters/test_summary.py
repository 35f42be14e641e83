"""What a SlurmCluster is told."""

from datetime import UTC, datetime

import pytest

from slurmoperator.clusters.summary import ClusterFacts, PartState, status
from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.objects.own.slurm_cluster import SlurmClusterStatus
from slurmruntime.crd.conditions import ObjectCondition

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def told(kind: str, truth: str = "True", message: str = "", generation: int = 1) -> ObjectCondition:
    return ObjectCondition(
        type=kind,
        status=truth,  # type: ignore[arg-type]  # one of three
        reason="Because",
        message=message,
        last_transition_time=NOW,
        observed_generation=generation,
    )


GOOD = (told("Accepted"), told("Ready"))


def ready(*parts: PartState) -> tuple[str, str, str]:
    after = status(SlurmClusterStatus(), ClusterFacts(parts=parts), generation=1, now=NOW)
    found = next(condition for condition in after.conditions if condition.type == "Ready")
    return found.status, found.reason, found.message


def test_it_is_ready_when_all_its_parts_are() -> None:
    assert ("True", "AllReady", "") == ready(PartState(name="Controller a", conditions=GOOD))


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ((), "Controller a: slurm-operator has not reported its state yet"),
        ((told("Accepted", "False", "bad"), told("Ready")), "Controller a: Because: bad"),
        ((*GOOD, told("Configured", "False", "line 7")), "Controller a: Because: line 7"),
        ((told("Accepted"), told("Ready", "False", "no image")), "Controller a: Because: no image"),
        ((*GOOD, told("SlurmKnown", "Unknown", "no answer")), "Controller a: Because: no answer"),
        ((*GOOD, told("SlurmKnown", "False", "no node")), "Controller a: Because: no node"),
        (
            (told("Accepted", generation=0), told("Ready")),
            "Controller a: its last change has not been processed yet",
        ),
    ],
)
def test_a_part_that_is_not_ready_is_named_with_its_cause(
    conditions: tuple[ObjectCondition, ...], said: str
) -> None:
    state = PartState(name="Controller a", generation=1, conditions=conditions)

    assert ("False", "NotReady", said) == ready(state)


def test_of_many_parts_the_first_are_named_and_the_others_counted() -> None:
    message = ready(*(PartState(name=f"NodeSet {number}") for number in range(5)))[2]

    assert message.endswith("; and 2 more")
    assert "NodeSet 2" in message
    assert "NodeSet 3" not in message


def test_workers_of_all_sets_are_added_and_kept_while_nothing_is_known() -> None:
    sets = [
        PartState(name=name, workers=NodeSetStatus(desired=2, ready_replicas=1, slurm_idle=1))
        for name in ("NodeSet a", "NodeSet b")
    ]
    after = status(SlurmClusterStatus(), ClusterFacts(parts=sets), generation=1, now=NOW)
    assert (4, 2, 2) == (after.workers, after.ready_workers, after.idle)

    later = status(after, ClusterFacts(accepted="bad"), generation=2, now=NOW)
    assert 4 == later.workers
    assert later == status(later, ClusterFacts(accepted="bad"), generation=2, now=NOW)
