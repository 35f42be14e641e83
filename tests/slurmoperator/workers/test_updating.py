"""Which workers are replaced for another template."""

from dataclasses import replace

import pytest

from slurmoperator.workers import updating
from slurmoperator.workers.choosing import REPLACED, SCALED_IN, RemovalCandidate, workers_to_remove
from slurmoperator.workers.situation import REASON_PREFIX, PodStage, WorkerObservation, WorkerPod
from slurmoperator.workers.updating import UpdateCandidate
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

OURS = f"{REASON_PREFIX}{REPLACED}"


def worker(
    number: int,
    *states: str,
    stage: PodStage = PodStage.READY,
    reason: str = "",
    is_current: bool = False,
    is_sure: bool = True,
    is_available: bool | None = None,
    is_cordoned: bool = False,
) -> UpdateCandidate:
    """An idle one that is ready and old, unless more is said."""
    name = f"gpu-{number}"
    given = frozenset(states or {"IDLE"})
    node = SlurmNodeFacts(name=SlurmNode(name), states=given, reason=reason)
    seen = WorkerObservation(is_sure=is_sure, node=node, has_jobs="ALLOCATED" in given)
    pod = WorkerPod(uid=name, resource_version="1", stage=stage, is_protected=True)
    leaving = RemovalCandidate(
        name=name, ordinal=number, pod=pod, seen=seen, is_cordoned=is_cordoned
    )
    ready = stage is PodStage.READY if is_available is None else is_available
    return UpdateCandidate(worker=leaving, is_current=is_current, is_available=ready)


MISSING = replace(worker(0), worker=replace(worker(0).worker, seen=WorkerObservation(is_sure=True)))


@pytest.mark.parametrize(
    ("given", "most_away", "going"),
    [
        pytest.param([worker(0), worker(1), worker(2)], 1, {2}, id="the highest number first"),
        pytest.param([worker(0), worker(1, "ALLOCATED")], 1, {0}, id="idle ones first"),
        pytest.param([worker(0), worker(1), worker(2)], 2, {1, 2}, id="as many as may"),
        pytest.param([worker(0, is_current=True), worker(1)], 1, {1}, id="only old ones"),
        pytest.param(
            [worker(0, "IDLE", "DRAIN", reason=OURS), worker(1)], 1, {0}, id="stays with its choice"
        ),
        pytest.param(
            [worker(0), worker(1, stage=PodStage.STARTING, is_current=True)],
            1,
            set(),
            id="a new one is not ready",
        ),
        pytest.param(
            [worker(0), worker(1, is_available=False, is_current=True)],
            1,
            set(),
            id="a new one is not ready for long enough",
        ),
        pytest.param(
            [worker(0), worker(1, "IDLE", "DRAIN", reason=OURS, is_current=True)],
            1,
            set(),
            id="a new one is still drained",
        ),
        pytest.param(
            [worker(0), worker(1, "DOWN", is_current=True)], 1, set(), id="a new one is down"
        ),
        pytest.param(
            [worker(0), worker(1, is_current=True, is_sure=False)],
            1,
            set(),
            id="of a new one nothing is known",
        ),
        pytest.param(
            [worker(0), worker(1, is_sure=False)], 1, set(), id="of an old one nothing is known"
        ),
        pytest.param(
            [worker(0), worker(1, stage=PodStage.TERMINATING)], 1, set(), id="one is going already"
        ),
        pytest.param([worker(0), worker(1, "DOWN")], 1, {1}, id="what is away goes first"),
        pytest.param(
            [worker(0, "DOWN"), worker(1, "DOWN", is_cordoned=True)],
            1,
            {0},
            id="and of these the cordoned last",
        ),
        pytest.param(
            [worker(0), worker(1, "DOWN"), worker(2, "DOWN")],
            2,
            {1, 2},
            id="what serves waits for what is away",
        ),
        pytest.param(
            [worker(n, stage=PodStage.UNSTARTED, is_sure=False) for n in range(5)],
            1,
            {0, 1, 2, 3, 4},
            id="what never started costs nothing",
        ),
    ],
)
def test_who_is_replaced(given: list[UpdateCandidate], most_away: int, going: set[int]) -> None:
    found = updating.to_replace(given, missing=0, most_away=most_away)

    assert {f"gpu-{number}" for number in going} == found


def test_missing_workers_and_those_that_slurm_does_not_have_are_away() -> None:
    assert MISSING.is_away
    assert frozenset() == updating.to_replace([worker(1)], missing=1, most_away=1)
    assert {"gpu-1"} == updating.to_replace([worker(1)], missing=1, most_away=2)


def test_what_is_drained_for_an_update_is_scaled_in_first() -> None:
    drained = worker(0, "IDLE", "DRAIN", reason=OURS).worker
    scaled_in = worker(1, "IDLE", "DRAIN", reason=f"{REASON_PREFIX}{SCALED_IN}").worker

    assert {"gpu-0"} == workers_to_remove([drained, worker(2).worker], 1)
    assert {"gpu-1"} == workers_to_remove([drained, scaled_in], 1)


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        (3, 10, 3),
        ("25%", 10, 3),
        ("25%", 4, 1),
        ("1%", 1, 1),
        ("100%", 7, 7),
        ("50%", 0, 1),
        (0, 4, 1),
        ("most", 4, 1),
        ("200%", 4, 8),
    ],
)
def test_how_many_may_be_away(given: int | str, wanted: int, expected: int) -> None:
    assert expected == updating.allowed_away(given, wanted)
