"""No grace period keeps a node from Slurm for longer than the cap, and none that a user can start at will for longer than Slurm's own."""

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
from slurmruntime.values.ids import SlurmNode
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


def decide(pod: Pod, *jobs: SlurmJob, released: SlurmNode | None = None) -> Decision:
    view = build.view(*jobs)
    facts = Facts(pod=pod, view=view, now=NOW, kube_node=build.KUBE_NODE, released=released)
    return lifecycle.decide(facts, POLICY)


def ending(end: JobEnd) -> SlurmJob:
    return replace(build.job(JobPhase.ENDED), end=end)


@pytest.mark.parametrize(
    "jobs",
    [
        *(
            pytest.param((ending(end),), id=end.value)
            for end in (JobEnd.PREEMPTED, JobEnd.NODE_FAIL, JobEnd.BOOT_FAIL)
        ),
        pytest.param((), id="forgotten"),
    ],
)
def test_a_pod_whose_job_ended_for_no_doing_of_its_user_gets_no_more_than_the_cap(
    jobs: tuple[SlurmJob, ...],
) -> None:
    (action,) = decide(stopping(), *jobs).actions

    assert isinstance(action, Shorten)
    assert 600 == action.grace_s
    assert "caps.grace_s" in action.message


@pytest.mark.safeguard(
    "grace",
    "a user deletes an own pod with a long grace period, and then ends its job in Slurm",
    "30 s from the deletion on",
)
@pytest.mark.parametrize(
    "job",
    [
        *(
            pytest.param(ending(end), id=end.value)
            for end in JobEnd
            if end not in (JobEnd.PREEMPTED, JobEnd.NODE_FAIL, JobEnd.BOOT_FAIL)
        ),
        pytest.param(build.job(JobPhase.PAUSED), id="suspended"),
    ],
)
def test_a_pod_whose_job_its_user_can_end_gets_no_more_than_slurm_gives_its_own(
    job: SlurmJob,
) -> None:
    (action,) = decide(stopping(600), job).actions

    assert isinstance(action, Shorten)
    assert 30 == action.grace_s
    assert "no job pays for more" in action.message
    assert (Wait(),) == decide(stopping(30), job).actions


@pytest.mark.parametrize("limit_min", [60, None])
def test_a_pod_whose_job_has_given_up_its_node_gets_no_more_than_slurm_gives_its_own(
    limit_min: int | None,
) -> None:
    job = replace(
        build.job(JobPhase.RUNNING),
        time_limit_min=limit_min,
        ends_at=NOW + timedelta(hours=1) if limit_min else None,
    )

    (action,) = decide(stopping(600), job, released=build.SLURM_NODE).actions

    assert isinstance(action, Shorten)
    assert 30 == action.grace_s


def test_a_grace_within_the_cap_is_its_owners_business() -> None:
    assert (Wait(),) == decide(stopping(600), ending(JobEnd.PREEMPTED)).actions


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


@pytest.mark.safeguard(
    "grace",
    "a Slurm user ends an own job in any way that Slurm lets them: `scancel`, a limit that is over, an end by RPC, suspending, shrinking",
    "30 s. After a preemption or the loss of a node, `caps.grace_s` at most, as after one that a user causes by another job of their own",
)
@pytest.mark.parametrize(
    ("cause", "job", "most_s"),
    [
        (Cause.PREEMPTED, ending(JobEnd.PREEMPTED), 600),
        (Cause.NODE_FAIL, ending(JobEnd.NODE_FAIL), 600),
        (Cause.LOST, build.waiting(), 600),
        (Cause.TIME_LIMIT, build.job(), 600),
        (Cause.MEMBER_FAILED, build.job(), 600),
        (Cause.TIME_LIMIT, ending(JobEnd.TIMEOUT), 30),
        (Cause.CANCELLED, ending(JobEnd.CANCELLED), 30),
        (Cause.ENDED, ending(JobEnd.COMPLETED), 30),
        (Cause.ENDED, None, 30),
        (Cause.SUSPENDED, build.job(JobPhase.PAUSED), 30),
        (Cause.RELEASED, build.job(), 30),
    ],
)
@pytest.mark.parametrize("over_s", [-5, 0, 1, YEARS_S])
def test_an_eviction_grants_no_more_than_the_cap_or_slurms_own_if_no_job_pays(
    cause: Cause, job: SlurmJob | None, most_s: int, over_s: int
) -> None:
    evict = Evict(cause=cause, message="over")
    pod = replace(build.bound(), grace_s=most_s + over_s)

    bounded = graces.limit_grace(pod, job, Decision(actions=(evict, Wait()), reason="why"), POLICY)

    sent = most_s if over_s > 0 else None
    assert (replace(evict, grace_s=sent), Wait()) == bounded.actions


def test_a_cap_below_slurms_own_holds_for_all() -> None:
    policy = Deadlines(caps=Caps(grace_s=10))
    evict = Evict(cause=Cause.CANCELLED, message="over")
    decision = Decision(actions=(evict,), reason="why")

    bounded = graces.limit_grace(
        replace(build.bound(), grace_s=11), ending(JobEnd.CANCELLED), decision, policy
    )

    assert (replace(evict, grace_s=10),) == bounded.actions


def test_what_evicts_nobody_is_left_as_it_is() -> None:
    end = EndPod(cause=Cause.CANCELLED, message="over")
    decision = Decision(actions=(end,), reason="why")

    assert decision == graces.limit_grace(
        replace(build.gated(), grace_s=YEARS_S), build.ended(), decision, POLICY
    )
