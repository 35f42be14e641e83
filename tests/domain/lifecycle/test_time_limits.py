"""The true limit beside the one Slurm shows, and what the lifecycle does as it comes near."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import (
    Cancel,
    Cause,
    Complete,
    Evict,
    Outcome,
    SetTimeLimit,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Deadlines, Decision, Facts
from bridge.domain.lifecycle.rules import time_limits
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Condition, Container, ContainerState, Phase, Pod
from slurmruntime.values import names
from tests.make import lives as build
from tests.make.lives import NOW

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def limited(
    left: timedelta,
    *,
    shown_min: int = 60,
    recorded: tuple[int, int] | None = None,
    phase: JobPhase = JobPhase.RUNNING,
) -> SlurmJob:
    """Slurm ends it so long from now."""
    plain = build.job(phase)
    limit_min, extended_min = recorded or (None, None)
    identity = replace(plain.identity, limit_min=limit_min, extended_min=extended_min)
    return replace(plain, time_limit_min=shown_min, ends_at=NOW + left, identity=identity)


def decide(
    pod: Pod, job: SlurmJob, *, now: datetime = NOW, policy: Deadlines | None = None
) -> Decision:
    since = now - timedelta(minutes=1)
    facts = Facts(pod=pod, view=build.view(job), now=now, since=since, kube_node=build.KUBE_NODE)
    return lifecycle.decide(facts, policy or build.POLICY)


def told(pod: Pod, cause: Cause) -> Pod:
    said = Condition(type=names.ALLOCATED_CONDITION, status="False", reason=cause.value)
    return replace(pod, conditions=(said,))


def timed_out(code: int = 143) -> Pod:
    """Evicted at its limit, and its containers are gone."""
    exited = build.exited(code)
    phase = Phase.FAILED if code else Phase.SUCCEEDED
    return told(
        build.deleting(replace(build.bound(), phase=phase, containers=(exited,))), Cause.TIME_LIMIT
    )


def set_limit(minutes: int, *, true_min: int, expected_min: int) -> SetTimeLimit:
    job = build.job()
    return SetTimeLimit(
        job_id=job.id,
        sluid=job.sluid,
        minutes=minutes,
        true_min=true_min,
        expected_min=expected_min,
    )


def test_far_from_its_limit_a_pod_is_looked_at_again_in_time() -> None:
    decision = decide(build.bound(), limited(10 * MINUTE))

    assert isinstance(decision.actions[0], Wait)
    assert 10 * MINUTE - time_limits.LEAD == decision.retry_after


def test_a_job_is_extended_by_the_pods_grace_before_slurm_ends_it() -> None:
    pod = replace(build.bound(), grace_s=600)

    decision = decide(pod, limited(time_limits.LEAD))

    assert (set_limit(60 + 10 + 2, true_min=60, expected_min=60),) == decision.actions


@pytest.mark.safeguard(
    "extension",
    "a tenant asks for a short limit, to start early, and for a long grace period, to run on",
    "at most `caps.grace_s` beyond the limit, which is charged; SIGTERM comes at the limit. Who wants Slurm's own 30 s sets that cap",
)
@pytest.mark.parametrize(("grace_s", "deletion_grace_s"), [(10**9, 0), (30, 10**9)])
def test_a_job_is_extended_by_the_cap_at_most(grace_s: int, deletion_grace_s: int) -> None:
    pod = replace(build.bound(), grace_s=grace_s, deletion_grace_s=deletion_grace_s)

    decision = decide(pod, limited(time_limits.LEAD))

    assert (set_limit(60 + 60 + 2, true_min=60, expected_min=60),) == decision.actions


def test_an_extended_jobs_pod_stays_until_its_true_limit() -> None:
    job = limited(3 * MINUTE + SECOND, shown_min=63, recorded=(60, 63))

    decision = decide(build.bound(), job)

    assert isinstance(decision.actions[0], Wait)
    assert decision.retry_after == SECOND


def test_at_its_true_limit_the_pod_is_evicted_and_only_if_it_has_not_ended() -> None:
    job = limited(3 * MINUTE, shown_min=63, recorded=(60, 63))

    (action,) = decide(build.bound(), job).actions

    assert isinstance(action, Evict)
    assert (Cause.TIME_LIMIT, True) == (action.cause, action.if_unchanged)


def test_an_administrators_limit_stands_and_what_we_recorded_is_void() -> None:
    job = limited(30 * MINUTE, shown_min=90, recorded=(60, 63))

    limit = time_limits.of(job, timedelta(0))

    assert limit is not None
    assert (90, False, NOW + 30 * MINUTE) == (limit.true_min, limit.is_extended, limit.runs_out_at)


@pytest.mark.safeguard(
    "extension",
    "a Slurm user lowers the limit of an own job while it is extended",
    "nothing: the true limit never rises by that",
)
@pytest.mark.parametrize(
    ("shown_min", "true_min"), [(63, 60), (62, 60), (61, 60), (60, 60), (45, 45)]
)
def test_an_owner_who_lowers_an_extended_limit_gains_no_minute(
    shown_min: int, true_min: int
) -> None:
    job = limited(30 * MINUTE, shown_min=shown_min, recorded=(60, 63))

    limit = time_limits.of(job, timedelta(0))

    assert limit is not None
    assert true_min == limit.true_min
    assert NOW + (30 - (shown_min - true_min)) * MINUTE == limit.runs_out_at


def test_a_limit_that_passed_while_nobody_looked_is_extended_first() -> None:
    decision = decide(build.bound(), limited(-20 * SECOND))

    assert (set_limit(63, true_min=60, expected_min=60),) == decision.actions


def test_a_job_is_extended_again_as_long_as_containers_stop() -> None:
    job = limited(MINUTE, shown_min=63, recorded=(60, 63))
    stopping = told(build.deleting(build.bound()), Cause.TIME_LIMIT)

    decision = decide(stopping, job)

    assert (set_limit(65, true_min=60, expected_min=63),) == decision.actions


def test_a_job_whose_pod_somebody_deleted_near_its_limit_waits_for_the_containers_too() -> None:
    decision = decide(build.deleting(build.bound()), limited(30 * SECOND))

    assert (set_limit(63, true_min=60, expected_min=60),) == decision.actions


@pytest.mark.parametrize("code", [0, 143])
def test_when_its_containers_are_gone_the_true_limit_is_set_back(code: int) -> None:
    job = limited(2 * MINUTE, shown_min=63, recorded=(60, 63))

    decision = decide(timed_out(code), job)

    assert (set_limit(60, true_min=60, expected_min=63),) == decision.actions


def test_the_completion_waits_until_the_limit_is_over_for_slurm_too() -> None:
    decision = decide(timed_out(), limited(-SECOND))

    assert (Wait(),) == decision.actions
    assert time_limits.SETTLED - SECOND == decision.retry_after


def test_then_it_is_completed_as_timed_out() -> None:
    (action,) = decide(timed_out(), limited(-time_limits.SETTLED)).actions

    assert isinstance(action, Complete)
    assert Outcome(timed_out=True) == action.outcome
    assert "time limit" == outcome.in_words(action.outcome)


@pytest.mark.parametrize("left", [timedelta(hours=1), None])
def test_a_limit_that_was_lifted_after_the_eviction_is_not_waited_for(
    left: timedelta | None,
) -> None:
    job = limited(left) if left is not None else build.job()

    (action,) = decide(timed_out(), job).actions

    assert isinstance(action, Cancel)


def test_a_pod_that_ended_before_it_was_evicted_ended_as_it_did() -> None:
    pod = replace(
        timed_out(), containers=(build.exited(0, at=NOW - MINUTE),), phase=Phase.SUCCEEDED
    )

    (action,) = decide(pod, limited(MINUTE, shown_min=63, recorded=(60, 63))).actions

    assert isinstance(action, Complete)
    assert Outcome() == action.outcome


def test_the_overtime_of_slurm_is_the_pods_too() -> None:
    policy = replace(build.POLICY, overtime=5 * MINUTE)

    within = decide(build.bound(), limited(-2 * MINUTE), policy=policy)
    over = decide(timed_out(), limited(-5 * MINUTE), policy=policy)

    assert isinstance(within.actions[0], Wait)
    assert (Wait(),) == over.actions


def test_a_pod_that_never_started_ends_as_failed() -> None:
    never = replace(build.deleting(build.bound()), start_time=None, phase=Phase.PENDING)
    pod = replace(
        told(never, Cause.NOT_STARTED),
        containers=(Container(name="main", state=ContainerState.WAITING),),
    )

    (action,) = decide(pod, build.job()).actions

    assert isinstance(action, Complete)
    assert Outcome(exit_code=outcome.NO_EXIT_CODE) == action.outcome


def test_a_suspended_placeholders_pod_goes_only_where_the_settings_say_so() -> None:
    paused = build.job(JobPhase.PAUSED)

    kept = decide(build.bound(), paused)
    evicted = decide(build.bound(), paused, policy=replace(build.POLICY, evict_suspended=True))

    assert isinstance(kept.actions[0], Tell)
    (action,) = evicted.actions
    assert isinstance(action, Evict)
    assert Cause.SUSPENDED is action.cause
