"""When too many pods would go at once, and what then becomes of each."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.lifecycle import breaker
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Action, Cancel, Cause, Evict, OwnCause, Tell
from bridge.domain.lifecycle.breaker import Limits, Tally
from bridge.domain.lifecycle.decision import Decision, Facts, Fit
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Condition, Pod
from bridge.domain.observation.view import Evidence, View
from slurmruntime.values import names
from tests.make import lives as build
from tests.make.lives import NOW

LIMITS = Limits()


@pytest.mark.parametrize(
    ("running", "bereft", "expected"),
    [
        pytest.param(10, 10, False, id="all of a few"),
        pytest.param(20, 20, False, id="as many as may always go"),
        pytest.param(21, 21, True, id="one more"),
        pytest.param(1000, 300, False, id="the share"),
        pytest.param(1000, 301, True, id="more than the share"),
        pytest.param(0, 0, False, id="nothing runs"),
    ],
)
def test_too_much_is_more_than_both_limits(running: int, bereft: int, expected: bool) -> None:
    assert expected is Tally(running, (build.bound(),) * bereft).is_too_much(LIMITS)


def evicted(cause: Cause) -> Pod:
    """A pod that we evicted, and whose containers still run."""
    condition = Condition(type=names.ALLOCATED_CONDITION, status="False", reason=cause.value)
    return replace(build.deleting(build.bound()), conditions=(condition,))


@pytest.mark.parametrize(
    ("pod", "job", "expected"),
    [
        pytest.param(build.bound(), build.job(), (1, 0), id="runs"),
        pytest.param(build.bound(), build.job(JobPhase.PAUSED), (1, 0), id="suspended"),
        pytest.param(build.bound(), build.waiting(), (1, 0), id="waits again"),
        pytest.param(build.bound(), build.ended(JobEnd.NODE_FAIL), (1, 1), id="node failed"),
        pytest.param(build.bound(), build.ended(JobEnd.BOOT_FAIL), (1, 1), id="boot failed"),
        *(
            pytest.param(build.bound(), build.ended(end), (1, 0), id=end.value)
            for end in JobEnd
            if end not in (JobEnd.NODE_FAIL, JobEnd.BOOT_FAIL)
        ),
        pytest.param(build.bound(), None, (1, 1), id="unknown to Slurm"),
        pytest.param(
            replace(build.bound(), start_time=NOW - timedelta(seconds=10)),
            None,
            (1, 0),
            id="not read yet",
        ),
        pytest.param(
            build.deleting(build.bound()),
            build.ended(JobEnd.NODE_FAIL),
            (1, 1),
            id="on its way out for it",
        ),
        pytest.param(
            evicted(Cause.LOST), None, (1, 1), id="on its way out, and forgotten by Slurm"
        ),
        pytest.param(build.deleting(build.bound()), build.job(), (1, 0), id="deleted by somebody"),
        pytest.param(build.placed(), build.ended(JobEnd.NODE_FAIL), (0, 0), id="not bound"),
        pytest.param(build.succeeded(), build.ended(JobEnd.NODE_FAIL), (0, 0), id="over"),
    ],
)
def test_a_running_pod_that_has_lost_its_placeholder_is_counted(
    pod: Pod, job: SlurmJob | None, expected: tuple[int, int]
) -> None:
    tally = breaker.tally([(pod, job)], NOW)

    assert expected == (tally.running, len(tally.bereft))


@pytest.mark.safeguard(
    "circuit breaker",
    "a user has many own pods stop until Slurm has forgotten their jobs, to hold back other users' evictions",
    "nothing: pods that are being deleted count only if they were evicted for a loss",
)
@pytest.mark.parametrize(
    "pod",
    [
        *(evicted(cause) for cause in Cause if not cause.is_loss),
        build.deleting(build.bound()),
    ],
)
def test_a_pod_that_stops_for_another_reason_does_not_count_once_slurm_has_forgotten_its_job(
    pod: Pod,
) -> None:
    tally = breaker.tally([(pod, None)] * 100, NOW)

    assert not tally.is_too_much(LIMITS)


def decide(pod: Pod, view: View, *, held: bool = True) -> Decision:
    facts = Facts(pod=pod, view=view, now=NOW, evictions_held=held, kube_node=build.KUBE_NODE)
    return lifecycle.decide(facts, build.POLICY)


def test_what_has_lost_its_placeholder_stays_and_is_told_so_while_the_breaker_is_open() -> None:
    view = build.view(build.ended(JobEnd.NODE_FAIL))

    held = decide(build.bound(), view)
    goes = decide(build.bound(), view, held=False)

    (tell,) = held.actions
    assert isinstance(tell, Tell)
    assert ("EvictionHeldBack", False) == (tell.reason, tell.allocated)
    assert held.retry_after is not None
    assert isinstance(goes.actions[0], Evict)


@pytest.mark.safeguard(
    "circuit breaker",
    "a Slurm user ends many own jobs: cancels them, completes them, lowers their limits",
    "nothing: only failed nodes and lost jobs count, which no user of Slurm brings about",
)
@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(build.placed(), build.ended(JobEnd.NODE_FAIL), id="it never ran"),
        *(
            pytest.param(build.bound(), build.ended(end), id=end.value)
            for end in JobEnd
            if end not in (JobEnd.NODE_FAIL, JobEnd.BOOT_FAIL)
        ),
    ],
)
def test_the_breaker_is_no_concern_of(pod: Pod, job: SlurmJob) -> None:
    assert isinstance(decide(pod, build.view(job)).actions[0], Evict)


def test_nobody_need_have_meant_a_loss() -> None:
    assert {Cause.NODE_FAIL, Cause.LOST} == {cause for cause in Cause if cause.is_loss}


@pytest.mark.parametrize(
    ("evidence", "held"), [(Evidence.NODE_FAILED, Tell), (Evidence.ENDED, Evict)]
)
def test_of_purged_jobs_only_those_that_a_node_took_along_are_held_back(
    evidence: Evidence, held: type[Action]
) -> None:
    """Whoever cancels own jobs while the controllers are down gains nothing either."""
    view = replace(build.view(), evidence=evidence, surely_none=True)

    assert isinstance(decide(build.bound(), view).actions[0], held)
    assert isinstance(decide(build.bound(), view, held=False).actions[0], Evict)


def test_the_operators_word_is_a_moment_with_its_zone() -> None:
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)

    assert noon == breaker.evict_until(" 2026-05-04T12:00:00Z")
    assert noon == breaker.evict_until("2026-05-04T14:00:00+02:00")
    for wrong in ("yes", "2026-05-04T12:00:00"):
        with pytest.raises(ValueError, match=wrong):
            breaker.evict_until(wrong)


def test_who_is_to_start_beside_them_waits_a_minute_and_goes_elsewhere() -> None:
    minute = timedelta(minutes=1)
    facts = replace(build.facts(build.gated(), build.job()), fit=Fit.OUTLIVED)

    tell = build.only_tell(replace(facts, since=NOW - minute + timedelta(seconds=1)))
    assert "where pods run whose jobs have ended" in tell.message

    cancel, told = build.actions(replace(facts, since=NOW - minute))
    assert isinstance(cancel, Cancel)
    assert cancel.cause is OwnCause.MISFIT
    assert isinstance(told, Tell)
    assert "nothing evicts them: looking for another" in told.message
