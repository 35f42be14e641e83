"""What a gang's members agree on: the placeholder's affairs once, assignment together, ends one by one."""

from dataclasses import replace
from datetime import timedelta

from bridge.domain.gang import seating
from bridge.domain.lifecycle.actions import (
    Assign,
    Cancel,
    Cause,
    Complete,
    EndPod,
    Enlist,
    Evict,
    Outcome,
    OwnCause,
    Record,
    Release,
    SetTimeLimit,
    Submit,
    Tell,
)
from bridge.domain.model import identities
from bridge.domain.model.allocation import Component, TaskShare
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Phase, Pod
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, PodUid
from tests.make import lives
from tests.make import members as build
from tests.make.gangs import (
    N1,
    N2,
    NOW,
    POLICY,
    UID,
    A,
    B,
    C,
    decided,
    decisions,
    ended,
    job,
    placed,
    running,
    waiting,
    wanted,
)


def test_one_submits_for_all_when_all_are_there() -> None:
    assert {} == decided([A, B])
    (submit,) = decided([A, B, C])["a"]
    assert isinstance(submit, Submit)
    assert submit.gang is not None
    assert (3, [A, B, C]) == (submit.gang.size, list(submit.gang.members))
    assert ["a"] == list(decided([A, B, C]))


def test_nothing_is_submitted_while_another_gate_is_on_any_of_them() -> None:
    queued = replace(B, gates=(names.GATE, "kueue.x-k8s.io/admission"))
    assert {} == decided([A, queued, C])


def told(*pods: Pod) -> dict[str, str]:
    """What each of an old gang's members is told."""
    messages: dict[str, str] = {}
    for name, actions in decided(
        [replace(pod, created_at=NOW - timedelta(minutes=2)) for pod in pods]
    ).items():
        (tell,) = actions
        assert isinstance(tell, Tell)
        assert "PodGroupIncomplete" == tell.reason
        messages[name] = tell.message
    return messages


def test_after_a_while_members_say_what_is_missing() -> None:
    assert {
        "a": "pod-group team-a/ring has 2 of the 3 pods it needs to start",
        "b": "pod-group team-a/ring has fewer than the 3 pods it needs to start; pod a reports how many",
    } == told(A, B)


def test_one_more_that_comes_is_written_to_the_first_and_not_to_all() -> None:
    """Else a pod that comes and goes costs a write for each of thousands."""
    crowd = [waiting(name, size=100) for name in "abcdef"]
    before, after = told(*crowd[:5]), told(*crowd)

    assert {"a", "f"} == {name for name in after if after[name] != before.get(name)}


def test_all_are_assigned_together_along_slurms_nodes() -> None:
    found = decided([A, B, C], job(JobPhase.RUNNING, A, B, C))
    assigns = [action for actions in found.values() for action in actions]
    assert all(isinstance(action, Assign) for action in assigns)
    seats = [(a.place.rank, a.slurm_node) for a in assigns if isinstance(a, Assign) and a.place]
    assert [(0, N1), (1, N1), (2, N2)] == seats


def test_one_that_does_not_fit_keeps_all_from_being_placed() -> None:
    found = decided([A, B, C], job(JobPhase.RUNNING, A, B, C), misfits=(C,))
    ((_, actions),) = found.items()
    cancel = actions[0]
    assert isinstance(cancel, Cancel)
    assert (OwnCause.MISFIT, (N2,)) == (cancel.cause, cancel.misfits)


def test_after_a_crash_in_the_middle_the_rest_follow() -> None:
    found = decided([placed("a", 0), B, placed("c", 2)], job(JobPhase.RUNNING, A, B, C))
    ((name, (assign,)),) = found.items()
    assert isinstance(assign, Assign)
    assert assign.place is not None
    assert ("b", 1, N1) == (name, assign.place.rank, assign.slurm_node)


def test_an_allocation_that_lost_a_member_is_held_for_a_while_and_given_back() -> None:
    its = job(JobPhase.RUNNING, A, B, C)
    assert {} == decided([A, B], its)
    ((name, (cancel,)),) = decided([A, B], its, dwelt=POLICY.bind_deadline).items()
    assert isinstance(cancel, Cancel)
    assert ("a", OwnCause.UNUSED) == (name, cancel.cause)


def test_a_replacement_is_enlisted_before_it_is_assigned() -> None:
    new = waiting("d")
    pods = [running("a", 0), running("c", 2), new]
    ((name, (enlist, assign)),) = decided(pods, job(JobPhase.RUNNING, A, B, C)).items()
    assert "d" == name
    assert isinstance(enlist, Enlist)
    assert (new.uid,) == enlist.pods
    assert isinstance(assign, Assign)
    assert assign.place is not None
    assert 1 == assign.place.rank


def test_a_replacement_waits_until_the_old_containers_are_gone() -> None:
    stopping = lives.deleting(running("b", 1))
    pods = [running("a", 0), stopping, running("c", 2), waiting("d")]
    assert {} == decided(pods, job(JobPhase.RUNNING, A, B, C))


def test_a_placeholder_that_runs_is_not_cancelled_for_a_newcomer_that_does_not_fit() -> None:
    new = waiting("d")
    pods = [running("a", 0), running("c", 2), new]
    its = job(JobPhase.RUNNING, A, B, C)
    assert {} == decided(pods, its, misfits=(new,))
    ((name, (tell,)),) = decided(pods, its, misfits=(new,), dwelt=timedelta(minutes=1)).items()
    assert isinstance(tell, Tell)
    assert ("d", "GangMemberUnplaced") == (name, tell.reason)
    assert "this one cannot join them: Slurm job" in tell.message
    assert "looking for another" not in tell.message


def test_nobody_joins_a_gang_whose_members_are_all_going() -> None:
    old = [lives.deleting(running(name, rank)) for rank, name in enumerate("abc")]
    new = [waiting(name) for name in "def"]
    found = decided([*old, *new], job(JobPhase.RUNNING, A, B, C))
    assert ["d"] == list(found)
    assert isinstance(found["d"][0], Submit)


def test_a_surplus_member_is_known_as_one() -> None:
    its = job(JobPhase.RUNNING, A, B, C)
    full = [running(name, rank) for rank, name in enumerate("abc")]
    new = wanted([waiting("d")])
    assert new is not None
    assert seating.is_surplus(its, full, new)
    assert not seating.is_surplus(its, [*full[:2], lives.deleting(full[2])], new)
    assert not seating.is_surplus(its, [A, B, C], new), "nobody is placed: it is not split"
    assert seating.is_surplus(its, [A, B, C], replace(new, is_exact=False))


def test_who_ends_first_is_released_and_the_placeholder_stays() -> None:
    pods = [ended("a", 0), running("b", 1), lives.deleting(ended("c", 2, 3))]
    found = decided(pods, job(JobPhase.RUNNING, A, B, C), mine=False)
    assert (Release(),) == found["a"]
    record, release = found["c"]
    assert isinstance(record, Record)
    assert (Outcome(exit_code=3), Release()) == (record.outcome, release)


def test_the_last_one_ends_it_for_all_with_the_worst_outcome() -> None:
    pods = [ended("a", 0), ended("b", 1, 2), ended("c", 2, 1)]
    ((name, (complete,)),) = decided(pods, job(JobPhase.RUNNING, A, B, C), mine=False).items()
    assert isinstance(complete, Complete)
    assert ("a", Outcome(exit_code=2)) == (name, complete.outcome)


def test_a_launcher_that_succeeded_ends_its_workers() -> None:
    gone = replace(lives.deleting(ended("b", 1, 143), at=build.CREATED), phase=Phase.FAILED)
    pods = [ended("a", 0), gone]
    ((_, (complete,)),) = decided(pods, job(JobPhase.RUNNING, A, B), mine=False).items()
    assert isinstance(complete, Complete)
    assert Outcome() == complete.outcome


def test_a_failure_on_record_may_have_been_taken_back_when_the_gang_is_deleted() -> None:
    gone = [
        lives.deleting(ended(name, rank, 143), at=build.CREATED)
        for rank, name in enumerate(("a", "b"))
    ]
    its = job(JobPhase.RUNNING, A, B)
    its = replace(its, identity=replace(its.identity, failed={C.uid: "exit 1"}))
    ((_, (complete,)),) = decided(gone, its, mine=False).items()
    assert isinstance(complete, Complete)
    assert complete.is_on_record


def test_a_gang_that_is_deleted_is_cancelled() -> None:
    gone = [
        replace(lives.deleting(ended(name, rank, 143), at=build.CREATED))
        for rank, name in ((0, "a"), (1, "b"))
    ]
    ((_, (cancel,)),) = decided(gone, job(JobPhase.RUNNING, A, B), mine=False).items()
    assert isinstance(cancel, Cancel)
    assert cancel.cause is None


def test_an_unread_time_limit_is_put_right_once() -> None:
    its = replace(
        job(JobPhase.RUNNING, A, B),
        time_limit_min=10,
        ends_at=NOW + timedelta(seconds=20),
    )
    found = decided([running("a", 0), running("b", 1)], its, mine=False)
    ((name, (limit,)),) = found.items()
    assert "a" == name
    assert isinstance(limit, SetTimeLimit)


def test_a_member_that_is_deleted_while_it_waits_leaves_the_job_to_the_others() -> None:
    pods = [lives.deleting(A), B, C]
    assert (Release(),) == decided(pods, job(JobPhase.WAITING, A, B, C))["a"]


def test_a_gang_that_is_deleted_while_it_waits_cancels_once() -> None:
    pods = [lives.deleting(pod) for pod in (A, B, C)]
    ((name, (cancel,)),) = decided(pods, job(JobPhase.WAITING, A, B, C)).items()
    assert "a" == name
    assert isinstance(cancel, Cancel)


def test_scancel_ends_those_it_was_for_and_nobody_else() -> None:
    over = job(JobPhase.ENDED, A, B, end=JobEnd.CANCELLED)
    found = decided([A, B, waiting("d")], over)
    assert {"a", "b"} == found.keys()
    assert all(isinstance(actions[0], EndPod) for actions in found.values())


def test_a_spare_placeholder_is_cancelled_once() -> None:
    jobs = [job(JobPhase.WAITING, A, B, C, number=number) for number in (7, 8)]
    ((_, (cancel,)),) = decided([A, B, C], *jobs).items()
    assert isinstance(cancel, Cancel)
    assert (JobId(8), OwnCause.SPARE) == (cancel.job_id, cancel.cause)


def test_a_replacement_takes_an_entry_and_the_failure_with_it() -> None:
    a, b, c, d = (PodUid(name) for name in "abcd")
    identity = replace(job(JobPhase.RUNNING).identity, pods=(a, b, c))
    failed = identities.record(identity, pod=b, how="exit 3")
    assert {b: "exit 3"} == failed.failed
    joined = identities.enlist(failed, pods=[d], alive={a, d})
    assert ((a, d, c), {}) == (joined.pods, joined.failed)
    assert joined == identities.record(joined, pod=b, how="exit 3"), "it counts no more"
    assert joined == identities.enlist(joined, pods=[d], alive={a, c, d})
    assert (*identity.pods, d) == identities.enlist(identity, pods=[d], alive={a, b, c}).pods
    assert failed == identities.decode(identities.encode(failed))


def sized(name: str, milli_cpu: int) -> Pod:
    return replace(waiting(name, 4), demand=Demand(milli_cpu=milli_cpu))


def heterogeneous(*pods: Pod) -> SlurmJob:
    parts = (
        Component(tasks=1, shares=(TaskShare(node=N1, tasks=1),)),
        Component(tasks=3, shares=(TaskShare(node=N2, tasks=3),)),
    )
    return replace(job(JobPhase.RUNNING, *pods, tasks=4), shares=(), parts=parts)


def test_members_of_different_size_get_slots_of_their_own_component() -> None:
    pods = [sized("a", 1000), sized("b", 4000), sized("c", 4000), sized("d", 4000)]
    found = decided(pods, heterogeneous(*pods))
    seats = {
        name: (a.slurm_node, a.place.rank)
        for name, (a,) in found.items()
        if isinstance(a, Assign) and a.place
    }
    assert {"a": (N1, 0), "b": (N2, 1), "c": (N2, 2), "d": (N2, 3)} == seats


def test_a_replacement_takes_a_slot_of_its_size() -> None:
    launcher, *workers = (sized("a", 1000), sized("b", 4000), sized("c", 4000), sized("d", 4000))
    placed_workers = [
        build.placed(worker, UID, rank) for rank, worker in enumerate(workers[:2], start=1)
    ]
    its = heterogeneous(launcher, *workers)
    assert {} == decided([*placed_workers, sized("y", 2000)], its), "no slot is of that size"
    ((_, (_, assign)),) = decided([*placed_workers, sized("x", 4000)], its).items()
    assert isinstance(assign, Assign)
    assert assign.place is not None
    assert (3, N2) == (assign.place.rank, assign.slurm_node)


def test_what_remains_of_a_broken_heterogeneous_job_is_cancelled_once() -> None:
    over = replace(heterogeneous(A, B), phase=JobPhase.ENDED, end=JobEnd.NODE_FAIL, remains=True)
    found = decided([running("a", 0), running("b", 1)], over, mine=False)
    assert [Cancel, Evict] == [type(action) for action in found["a"]]
    assert [Evict] == [type(action) for action in found["b"]]


def test_where_they_say_so_a_members_failure_ends_the_others() -> None:
    its = job(JobPhase.RUNNING, A, B)
    pods = [ended("a", 0, 3), running("b", 1)]
    assert "b" not in decided(pods, its, mine=False)
    notes = {**pods[1].annotations, names.ON_FAILURE_ANNOTATION: "end"}
    strict = [pods[0], replace(pods[1], annotations=notes)]
    (evict,) = decided(strict, its, mine=False)["b"]
    assert isinstance(evict, Evict)
    assert (Cause.MEMBER_FAILED, "a of its gang failed") == (evict.cause, evict.message)
    fine = [ended("a", 0), strict[1]]
    assert "b" not in decided(fine, its, mine=False)


def test_a_replacement_gets_no_slot_in_a_job_that_was_made_smaller_while_it_ran() -> None:
    stays = running("a", 0)
    stays = replace(stays, annotations={**stays.annotations, names.NODELIST_ANNOTATION: "k1,k2"})
    smaller = replace(job(JobPhase.RUNNING, A, B, C), nodes=(N1,), shares=())
    new = waiting("d")

    assert (new,) == decisions([stays, new], smaller).apart
