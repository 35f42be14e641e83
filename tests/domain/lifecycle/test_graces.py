"""No grace period keeps a node from Slurm for longer than the cap."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.caps import Caps
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Cause, EndPod, Evict, SetTimeLimit, Shorten, Wait
from bridge.domain.lifecycle.decision import Deadlines, Decision, Facts
from bridge.domain.lifecycle.rules import graces
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from tests.make import lives as build
from tests.make.lives import NOW

YEARS_S = 10**9
POLICY = Deadlines(caps=Caps(grace_s=600))


def stopping(grace_s: int = YEARS_S) -> Pod:
    return replace(
        build.deleting(build.bound()),
        deletion_grace_s=grace_s,
        deletion_at=NOW + timedelta(seconds=grace_s),
    )


def decide(pod: Pod, *jobs: SlurmJob) -> Decision:
    facts = Facts(pod=pod, view=build.view(*jobs), now=NOW, kube_node=build.KUBE_NODE)
    return lifecycle.decide(facts, POLICY)


def ending(end: JobEnd) -> SlurmJob:
    return replace(build.job(JobPhase.ENDED), end=end)


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param((ending(JobEnd.CANCELLED),), id="cancelled"),
        pytest.param((ending(JobEnd.PREEMPTED),), id="preempted"),
        pytest.param((build.job(JobPhase.PAUSED),), id="suspended"),
        pytest.param((), id="forgotten"),
    ],
)
def test_a_pod_whose_job_is_over_gets_no_more_than_the_cap(jobs: tuple[SlurmJob, ...]) -> None:
    (action,) = decide(stopping(), *jobs).actions

    assert isinstance(action, Shorten)
    assert 600 == action.grace_s
    assert "caps.grace_s" in action.message


def test_a_grace_within_the_cap_is_its_owners_business() -> None:
    assert (Wait(),) == decide(stopping(600), ending(JobEnd.CANCELLED)).actions


def test_while_its_job_runs_a_pod_may_take_its_time() -> None:
    assert (Wait(),) == decide(stopping(), build.job(JobPhase.RUNNING)).actions


@pytest.mark.parametrize(("left_s", "wanted"), [(-1, Shorten), (0, Shorten), (1, Wait)])
def test_at_its_true_limit_it_gets_no_more_than_the_cap(left_s: int, wanted: type) -> None:
    job = build.job(JobPhase.RUNNING)
    limit = timedelta(minutes=12, seconds=left_s)
    extended = replace(
        job,
        time_limit_min=72,
        ends_at=NOW + limit,
        identity=replace(job.identity, limit_min=60, extended_min=72),
    )

    assert [wanted] == [type(action) for action in decide(stopping(), extended).actions]


def test_a_shortened_grace_does_not_end_the_wait_for_containers() -> None:
    """A kubelet may be away: nobody knows whether they still run, and the job holds their node."""
    job = replace(build.job(JobPhase.RUNNING), time_limit_min=60, ends_at=NOW)

    (action,) = decide(stopping(600), job).actions

    assert isinstance(action, SetTimeLimit)
    assert 60 + 10 + 2 == action.minutes


@pytest.mark.parametrize(("grace_s", "sent"), [(YEARS_S, 600), (601, 600), (600, None), (5, None)])
def test_an_eviction_grants_no_more_than_the_cap(grace_s: int, sent: int | None) -> None:
    evict = Evict(cause=Cause.CANCELLED, message="over")
    pod = replace(build.bound(), grace_s=grace_s)

    bounded = graces.limit_grace(pod, Decision(actions=(evict, Wait()), reason="why"), POLICY)

    assert (replace(evict, grace_s=sent), Wait()) == bounded.actions


def test_what_evicts_nobody_is_left_as_it_is() -> None:
    end = EndPod(cause=Cause.CANCELLED, message="over")
    decision = Decision(actions=(end,), reason="why")

    assert decision == graces.limit_grace(replace(build.gated(), grace_s=YEARS_S), decision, POLICY)
