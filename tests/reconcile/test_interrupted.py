"""Whichever write goes wrong, in whichever way: what is left undone is done, what was done is not done again.

For every kind of decision, every write of it and every fault; each case takes milliseconds. What the real servers make
of it is seen in `tests/integration/test_killed_at_a_write.py`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, get_args

import pytest
from structlog.testing import capture_logs

from bridge.domain.lifecycle.actions import (
    Action,
    Adopt,
    Assign,
    Cancel,
    Complete,
    EndPod,
    Enlist,
    Evict,
    Excuse,
    Record,
    Release,
    Resize,
    Restore,
    SetTimeLimit,
    Shorten,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Actor
from slurmruntime.kube.meta import rfc3339
from slurmruntime.process.metrics.pods import PodMetrics
from slurmruntime.values import names
from tests import virtual_time
from tests.make.apiserver import Manifest
from tests.make.manifests import GATED, in_ring, job, member, placed, pod, running, told
from tests.make.slurm import Job
from tests.make.trouble import Fault, Trouble
from tests.reconcile.leader import Leader
from tests.virtual_time import EPOCH, VirtualClock

pytestmark = pytest.mark.slow

SETTLED_AFTER_S = 30.0
"""Longer than a lost submit is waited for, and than any back-off after one failure."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is, who acts on it, and which actions that takes."""

    name: str
    actor: Actor
    there: Callable[[], tuple[list[Manifest], list[Job]]]
    actions: frozenset[type[Action]]


def situation(
    name: str,
    actor: Actor,
    there: Callable[[], tuple[list[Manifest], list[Job]]],
    *actions: type[Action],
) -> Situation:
    return Situation(name, actor, there, frozenset(actions))


def stopping_for_years() -> Manifest:
    years_s = 10**9
    found = placed("one")
    found["metadata"] |= {
        "deletionTimestamp": rfc3339(EPOCH + timedelta(seconds=years_s)),
        "deletionGracePeriodSeconds": years_s,
    }
    return found


SITUATIONS = [
    situation(
        "a new pod",
        Actor.EXTENDER,
        lambda: ([pod("one", GATED)], []),
        Submit,
        Tell,
    ),
    situation(
        "its placeholder runs",
        Actor.EXTENDER,
        lambda: ([pod("one", GATED)], [running()]),
        Assign,
    ),
    situation(
        "two placeholders",
        Actor.EXTENDER,
        lambda: ([pod("one", GATED)], [job(1), job(2)]),
        Cancel,
        Tell,
    ),
    situation(
        "deleted while it waits",
        Actor.EXTENDER,
        lambda: ([pod("one", GATED, is_deleting=True)], [job()]),
        Cancel,
        Release,
    ),
    situation(
        "cancelled while it waits",
        Actor.EXTENDER,
        lambda: ([pod("one", GATED)], [job(state="CANCELLED")]),
        EndPod,
        Release,
    ),
    situation(
        "a new gang",
        Actor.EXTENDER,
        lambda: ([member(name, 3) for name in "abc"], []),
        Submit,
        Tell,
    ),
    situation(
        "a gang that gets its nodes, two members replaced",
        Actor.EXTENDER,
        lambda: (
            [placed("a", in_ring(0)), member("d", 3), member("e", 3)],
            [running(1, "a", "b", "c", ring=True, tasks=3)],
        ),
        Enlist,
        Assign,
    ),
    situation(
        "a gang that has grown while it waits",
        Actor.EXTENDER,
        lambda: (
            [member(name, 3) for name in "abc"],
            [job(1, "a", "b", ring=True, tasks=2)],
        ),
        Enlist,
        Resize,
        Submit,
        Tell,
    ),
    situation(
        "it has succeeded",
        Actor.CONTROLLERS,
        lambda: ([placed("one", state="succeeded")], [running()]),
        Complete,
        Release,
    ),
    situation(
        "it has gone down with its machine",
        Actor.CONTROLLERS,
        lambda: ([placed("one", state="lost")], [running()]),
        Excuse,
        Complete,
        Release,
    ),
    situation(
        "a member has failed, the others run",
        Actor.CONTROLLERS,
        lambda: (
            [placed("a", in_ring(0), state="failed"), placed("b", in_ring(1))],
            [running(1, "a", "b", ring=True, tasks=2)],
        ),
        Record,
        Release,
    ),
    situation(
        "a member has failed, which ends the others",
        Actor.CONTROLLERS,
        lambda: (
            [
                placed("a", in_ring(0), state="failed"),
                placed("b", {**in_ring(1), names.ON_FAILURE_ANNOTATION: "end"}),
            ],
            [running(1, "a", "b", ring=True, tasks=2)],
        ),
        Record,
        Release,
        Evict,
    ),
    situation(
        "cancelled while it runs",
        Actor.CONTROLLERS,
        lambda: ([placed("one")], [job(state="CANCELLED", nodes="s1")]),
        Evict,
    ),
    situation(
        "cancelled while it takes years to stop",
        Actor.CONTROLLERS,
        lambda: ([stopping_for_years()], [job(state="CANCELLED", nodes="s1")]),
        Shorten,
    ),
    situation(
        "its time limit comes near",
        Actor.CONTROLLERS,
        lambda: (
            [placed("one")],
            [running(limit_min=10, ends_s=EPOCH.timestamp() + 80)],
        ),
        SetTimeLimit,
    ),
    situation(
        "another job stands in for a lost one",
        Actor.CONTROLLERS,
        lambda: ([placed("one")], [running(2, restores=f"s{1:013}")]),
        Adopt,
    ),
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: all of both systems but versions, moments and sentences."""

    pods: str
    jobs: str
    conflicts: tuple[str, ...] = field(default=(), compare=False)
    """Writes whose guard did not hold."""


def lived_through(there: Situation, trouble: Trouble) -> Outcome:
    async def main(clock: VirtualClock) -> Outcome:
        leader = Leader(there.actor, *there.there(), trouble, clock)
        await leader.lead(for_s=SETTLED_AFTER_S)
        pods = {name: told(pod) for name, pod in leader.api.pods.items()}
        jobs = {
            job.id: (job.state, job.tasks, job.limit_min, job.comment)
            for job in leader.slurm.jobs.values()
        }
        return Outcome(
            json.dumps(pods, indent=1, sort_keys=True),
            json.dumps(jobs, indent=1),
            tuple(leader.api.conflicts),
        )

    return virtual_time.run(main)


@cache
def lived_smoothly(there: Situation) -> tuple[Outcome, tuple[str, ...]]:
    """How it ends, and the writes that takes: once for all faults, as time is virtual."""
    smooth = Trouble()
    return lived_through(there, smooth), tuple(smooth.writes)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_after_a_write_that_went_wrong_all_is_as_if_it_had_not(
    there: Situation, fault: Fault
) -> None:
    expected, writes = lived_smoothly(there)
    assert writes
    for at, write in enumerate(writes, start=1):
        found = lived_through(there, Trouble(fault, at=at))
        assert expected == found, f"write {at}, {write}: {fault.value}"


@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_the_situations_take_the_actions_that_they_are_for(
    there: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: set[str] = set()
    monkeypatch.setattr(PodMetrics, "decided", lambda _, action: done.add(action))
    found = lived_through(there, Trouble())
    assert {action.__name__ for action in there.actions} == done - {Wait.__name__}
    assert not found.conflicts


def test_every_action_is_among_them() -> None:
    """But Restore, whose one write is the controllers' own."""
    covered = frozenset().union(*(there.actions for there in SITUATIONS))
    assert frozenset(get_args(Action)) - covered == {Wait, Restore}


def logged(situation_: str, action: type[Action]) -> Any:
    [there] = (each for each in SITUATIONS if each.name == situation_)
    with capture_logs() as logs:
        lived_through(there, Trouble())
    [entry] = (
        log for log in logs if (log["event"], log.get("action")) == ("pod.acted", action.__name__)
    )
    return entry


def test_the_log_of_an_eviction_says_its_cause() -> None:
    assert "SlurmCancelled" == logged("cancelled while it runs", Evict)["cause"]


def test_the_log_of_a_cancel_names_the_job_that_is_cancelled() -> None:
    assert 2 == logged("two placeholders", Cancel)["job_id"]
