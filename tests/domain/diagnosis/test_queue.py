"""Slurm's queue as people look at it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.diagnosis import queue
from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.model.jobs import JobPhase
from slurmruntime.values.ids import JobId, PodUid
from tests.make import lives as build


def waiting(id_: int, *, priority: int = 10, partition: str = "gpu") -> QueuedJob:
    return QueuedJob(
        id=JobId(id_),
        state="PENDING",
        phase=JobPhase.WAITING,
        priority=priority,
        partition=partition,
        identity=build.waiting().identity,
    )


@pytest.mark.parametrize(
    ("other", "is_ahead"),
    [
        pytest.param(waiting(9), True, id="older, of the same priority"),
        pytest.param(waiting(11), False, id="younger, of the same priority"),
        pytest.param(waiting(11, priority=11), True, id="of a higher priority"),
        pytest.param(waiting(9, priority=9), False, id="of a lower priority"),
        pytest.param(waiting(9, partition="cpu"), False, id="in another partition"),
        pytest.param(waiting(9, partition="cpu,gpu"), True, id="in one of its partitions"),
        pytest.param(waiting(9, priority=0), False, id="held"),
        pytest.param(replace(waiting(9), phase=JobPhase.RUNNING), False, id="running"),
    ],
)
def test_says_who_goes_first(other: QueuedJob, *, is_ahead: bool) -> None:
    job = waiting(10)

    assert ([other] if is_ahead else []) == list(queue.ahead_of(job, [job, other]))


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [("cpu=4,mem=8G,node=1,gres/gpu=2", 2), ("cpu=4", 0), ("gres/gpu:a100=2", 0), ("", 0)],
)
def test_counts_gpus(tres: str, gpus: int) -> None:
    assert gpus == replace(waiting(1), tres=tres).gpus


def test_puts_pods_and_placeholders_together() -> None:
    pod = build.gated()
    alone = replace(build.gated(), uid=PodUid("pod-2"), name="alone")
    ended = replace(build.succeeded(), uid=PodUid("pod-3"))
    strangers = replace(waiting(7), identity=None)
    over = replace(waiting(6), phase=JobPhase.ENDED)

    found = queue.entries([pod, alone, ended], [waiting(4711), strangers, over], build.NOW)

    assert [("Pod/alone", None), ("Pod/train", 4711)] == [(e.workload, e.job) for e in found]
    assert timedelta(minutes=1) == found[1].age
    assert (1, 0) == (found[1].pods, found[1].running)


def test_shows_what_waits_first_by_its_turn() -> None:
    running = replace(waiting(1), state="RUNNING", phase=JobPhase.RUNNING, priority=99)

    found = queue.entries([], [running, waiting(3), waiting(2), waiting(4, priority=11)], build.NOW)

    assert [4, 2, 3, 1] == [entry.job for entry in found]


def test_says_what_kubernetes_knows_where_slurm_was_not_asked() -> None:
    found = queue.entries([build.bound()], None, build.NOW)

    assert [("Pod/train", 4711, 1, ("k1",))] == [
        (e.workload, e.job, e.running, e.nodes) for e in found
    ]
