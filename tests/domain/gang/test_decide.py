"""One way to decide for one pod and for many: who is looked at, who is set apart, and how much work that is."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.gang.decide import Decisions
from bridge.domain.lifecycle.actions import Evict, Record, Release, Submit, Tell
from bridge.domain.lifecycle.decision import Deadlines, WhenFull
from bridge.domain.model.allocation import TaskShare
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, SlurmNode
from tests.make import lives
from tests.make import members as build
from tests.make.gangs import POLICY, A, B, C, decided, decisions, ended, job, plan, running, waiting
from tests.make.visits import CountedUid, visits

D = waiting("d")
FULL = [running(name, rank) for rank, name in enumerate("abc")]
RUNS = job(JobPhase.RUNNING, *FULL)

# --- a workload of one -----------------------------------------------------------------------------------------------


def test_a_single_pod_is_a_workload_of_one() -> None:
    found = decisions([lives.gated()])
    ((pod, decision),) = found.first
    assert lives.gated() == pod
    assert (Submit(avoid=(), gang=None),) == decision.actions
    assert ((), ()) == (found.rest, found.apart)


def test_a_single_pod_that_only_waits_says_when_to_look_again() -> None:
    found = decisions([lives.gated()], fresh=False)
    ((_, decision),) = found.first
    assert found.retry_after is not None
    assert decision.retry_after == found.retry_after


def test_nothing_is_submitted_for_a_pod_that_two_groups_claim() -> None:
    labels = {names.POD_GROUP_LABEL: "ring", "kueue.x-k8s.io/pod-group-name": "other"}
    torn = build.pod("torn", labels=labels)
    ((tell,),) = decided([torn]).values()
    assert isinstance(tell, Tell)
    assert "PodGroupInvalid" == tell.reason
    assert "two groups claim the pod" in tell.message


# --- no slot ---------------------------------------------------------------------------------------------------------


def with_newcomers(*pods: Pod) -> Decisions:
    return decisions([*FULL, *pods], RUNS, dwelt=timedelta(seconds=10), policy=POLICY)


def saying(word: str, pod: Pod = D) -> Pod:
    return replace(pod, annotations={**pod.annotations, names.WHEN_FULL_ANNOTATION: word})


def test_a_surplus_member_is_set_apart() -> None:
    found = with_newcomers(D)
    assert (D,) == found.apart
    assert ((), ()) == (found.first, found.rest)


def test_a_surplus_member_that_says_so_waits() -> None:
    found = with_newcomers(saying("wait"))
    ((pod, decision),) = found.rest
    assert (saying("wait"), ()) == (pod, found.apart)
    assert ["GangFull"] == [
        action.reason for action in decision.actions if isinstance(action, Tell)
    ]


def test_nobody_is_set_apart_while_a_slot_is_about_to_be_free() -> None:
    stopping = lives.deleting(FULL[1])
    found = decisions([FULL[0], stopping, FULL[2], D], RUNS)
    assert () == found.apart
    assert timedelta(seconds=1) == found.retry_after


# --- a member that was written in after its placeholder was read -----------------------------------------------------


def test_a_placeholder_is_read_again_once_for_a_member_that_it_does_not_name() -> None:
    its = job(JobPhase.RUNNING, A, B)
    assert ((C.uid, its.id),) == plan(FULL, its, mine=False).unread
    assert () == plan(FULL, its, mine=False, read_again={C.uid}).unread


def test_nothing_is_done_on_a_reading_that_misses_a_member() -> None:
    over = job(JobPhase.ENDED, A, B, end=JobEnd.CANCELLED)
    assert {} == decided(FULL, over, mine=False)
    again = decided(FULL, replace(over, identity=RUNS.identity), mine=False)
    assert [Evict] * 3 == [type(action) for actions in again.values() for action in actions]


def test_a_member_that_failed_is_not_let_go_on_an_old_view() -> None:
    """Its failure would not be recorded, and where its controller replaces it nobody would know of it."""
    pods = [running("a", 0), ended("b", 1, 3)]
    stale = decisions(pods, RUNS, mine=False, fresh=False)
    assert ((), ()) == (stale.first, stale.rest)
    assert stale.retry_after is not None
    record, release = decided(pods, RUNS, mine=False)["b"]
    assert isinstance(record, Record)
    assert isinstance(release, Release)


# --- how much work it is ---------------------------------------------------------------------------------------------


def many(number: int, make: Callable[[str, int], Pod]) -> list[Pod]:
    pods = (make(f"m-{rank}", rank) for rank in range(number))
    return [replace(pod, uid=PodUid(CountedUid(pod.uid))) for pod in pods]


def large(phase: JobPhase, pods: list[Pod], *, tasks: int) -> SlurmJob:
    made = job(phase, *pods, tasks=tasks)
    if phase is not JobPhase.RUNNING:
        return made
    nodes = tuple(SlurmNode(f"n{number}") for number in range(-(-tasks // 8)))
    return replace(made, nodes=nodes, shares=tuple(TaskShare(node=node, tasks=8) for node in nodes))


Situation = tuple[list[Pod], list[SlurmJob], bool]


def incomplete(number: int) -> Situation:
    return many(number, lambda name, _: waiting(name, 9999)), [], True


def complete(number: int) -> Situation:
    return many(number, lambda name, _: waiting(name, number)), [], True


def unnamed(number: int) -> Situation:
    pods, _, _ = complete(number)
    return pods, [large(JobPhase.WAITING, pods[:1], tasks=number)], True


def seated(number: int) -> Situation:
    pods, _, _ = complete(number)
    return pods, [large(JobPhase.RUNNING, pods, tasks=number)], True


def surplus(number: int) -> Situation:
    half = number // 2
    pods = [*many(number, running)[:half], *complete(number)[0][half:]]
    return pods, [large(JobPhase.RUNNING, pods[:half], tasks=half)], True


def run(number: int) -> Situation:
    pods = many(number, running)
    return pods, [large(JobPhase.RUNNING, pods, tasks=number)], False


def some_have_not_come(number: int) -> Situation:
    pods = many(number, running)
    return pods, [large(JobPhase.RUNNING, pods, tasks=2 * number)], False


def all_have_ended(number: int) -> Situation:
    pods = many(number, ended)
    return pods, [large(JobPhase.RUNNING, pods, tasks=number)], False


def half_have_failed(number: int) -> Situation:
    half = number // 2
    failed = many(number, lambda name, rank: ended(name, rank, 1))
    pods = [*many(number, running)[:half], *failed[half:]]
    return pods, [large(JobPhase.RUNNING, pods, tasks=number)], False


@pytest.mark.parametrize(
    "situation",
    [
        incomplete,
        complete,
        unnamed,
        seated,
        surplus,
        run,
        some_have_not_come,
        all_have_ended,
        half_have_failed,
    ],
)
def test_a_look_is_work_in_proportion_to_the_members(
    situation: Callable[[int], Situation],
) -> None:
    """Four times the members; quadratic work would be sixteen times as much."""
    assert work(situation(160), WhenFull.WAIT) < 4.3 * work(situation(40), WhenFull.WAIT)


def test_setting_many_apart_is_work_in_proportion_to_the_members() -> None:
    assert work(surplus(160), WhenFull.OWN_JOB) < 4.3 * work(surplus(40), WhenFull.OWN_JOB)


def work(situation: Situation, when_full: WhenFull) -> int:
    members, jobs, mine = situation
    pods = [saying(when_full.value, pod) for pod in members]
    policy = Deadlines(kept_slots_deadline=timedelta(days=9))
    return visits(lambda: decisions(pods, *jobs, mine=mine, policy=policy))
