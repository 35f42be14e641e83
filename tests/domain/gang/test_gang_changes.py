"""A gang that changes: while it waits its placeholder follows, and who comes too late for a slot is told so."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.gang import endings, members, seating
from bridge.domain.gang.members import Member
from bridge.domain.lifecycle.actions import Cancel, Cause, Enlist, Evict, OwnCause, Resize, Tell
from bridge.domain.lifecycle.decision import Deadlines, Decision, WhenFull
from bridge.domain.lifecycle.table import row_of
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import workload
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Workload
from slurmruntime.values import names
from slurmruntime.values.ids import alone_key
from tests.make import lives
from tests.make.gangs import NOW, A, B, C, decided, job, running, uid, waiting

D = waiting("d")
LARGE = Demand(milli_cpu=8000)


def of(size: int, names_: str) -> list[Pod]:
    return [waiting(name, size) for name in names_]


def test_a_placeholder_asks_for_more_when_its_gang_grows_and_names_the_new_ones() -> None:
    pods = of(5, "abcde")
    ((name, (enlist, resize)),) = decided(pods, job(JobPhase.WAITING, A, B, C)).items()
    assert "a" == name
    assert isinstance(enlist, Enlist)
    assert (uid(pods[3]), uid(pods[4])) == enlist.pods
    assert set(map(uid, pods)) == enlist.alive
    assert isinstance(resize, Resize)
    assert (7, 5) == (resize.job_id, resize.gang.size)


def test_it_asks_for_less_when_its_gang_shrinks() -> None:
    ((_, (resize,)),) = decided(of(2, "ab"), job(JobPhase.WAITING, A, B, C)).items()
    assert isinstance(resize, Resize)
    assert 2 == resize.gang.size


def test_nothing_is_asked_again_once_it_is_done_or_before_all_are_there() -> None:
    pods = of(4, "abcd")
    assert {} == changes_of(pods, job(JobPhase.WAITING, *pods, tasks=4))
    assert {} == changes_of(pods[:3], job(JobPhase.WAITING, A, B, C))


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(replace(job(JobPhase.WAITING, A, B, C), submitted_at=None), id="not read yet"),
        pytest.param(job(JobPhase.RUNNING, A, B, C), id="it runs"),
    ],
)
def test_nothing_is_asked_of_a_placeholder_that(there: SlurmJob) -> None:
    assert {} == changes_of(of(4, "abcd"), there)


@pytest.mark.parametrize("size", [2, 4])
def test_one_that_started_at_another_size_before_anybody_was_placed_is_given_back(
    size: int,
) -> None:
    pods = of(size, "abcd"[:size])
    ((_, (cancel,)),) = decided(pods, job(JobPhase.RUNNING, A, B, C)).items()
    assert isinstance(cancel, Cancel)
    assert OwnCause.RESIZED == cancel.cause


def test_a_replacement_is_written_in_while_the_gang_waits() -> None:
    """Else the placeholder would be nobody's as soon as all of the first ones had been replaced."""
    ((_, (enlist,)),) = changes_of([A, B, D], job(JobPhase.WAITING, A, B, C)).items()
    assert enlist == Enlist(
        job_id=job(JobPhase.WAITING).id,
        sluid=job(JobPhase.WAITING).sluid,
        pods=(uid(D),),
        alive=frozenset(map(uid, (A, B, D))),
    )


def test_a_member_of_another_size_makes_it_another_job() -> None:
    pods = [A, B, replace(C, demand=LARGE)]
    (actions,) = changes_of(pods, job(JobPhase.WAITING, *pods)).values()
    assert [Resize] == [type(action) for action in actions]


def changes_of(pods: list[Pod], there: SlurmJob) -> dict[str, tuple[Enlist | Resize, ...]]:
    asked = {
        name: tuple(action for action in actions if isinstance(action, Enlist | Resize))
        for name, actions in decided(pods, there).items()
    }
    return {name: actions for name, actions in asked.items() if actions}


def group(*pods: Pod, declared: int = 3, is_exact: bool = True) -> Workload:
    found = workload.evaluate([(membership(pod), pod) for pod in pods])
    size = max(declared, len(pods))
    return replace(found, size=size, declared=declared, is_exact=is_exact)


def membership(pod: Pod) -> Membership:
    return Membership(kind="Job", namespace=pod.namespace, name="ring", key=alone_key(pod.uid))


def test_a_group_that_says_how_many_it_is_at_least_takes_in_who_comes_while_it_waits() -> None:
    four = group(A, B, C, D, is_exact=False)
    assert four.is_resized([3])
    assert not four.is_resized([4])
    assert not four.is_resized([5]), "who went leaves room for others"
    large = group(A, B, C, replace(D, demand=LARGE), is_exact=False)
    assert not large.is_resized([3]), "of another size: that would take another job"


def test_an_exact_group_has_its_number_of_each_size() -> None:
    mixed = group(replace(A, demand=LARGE), B, C)
    assert not mixed.is_resized([1, 2])
    assert mixed.is_resized([2, 1])
    assert mixed.is_resized([3])


# --- no slot is free ------------------------------------------------------------------------------------------------

FULL = [running("a", 0), running("b", 1), running("c", 2)]
RUNS = job(JobPhase.RUNNING, *FULL)


def saying(word: str) -> Pod:
    return replace(D, annotations={**D.annotations, names.WHEN_FULL_ANNOTATION: word})


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (D, WhenFull.OWN_JOB),
        (saying("wait"), WhenFull.WAIT),
        (saying("own-job"), WhenFull.OWN_JOB),
        (saying("perhaps"), WhenFull.OWN_JOB),
    ],
)
def test_a_surplus_member_gets_a_job_of_its_own_unless_it_says_otherwise(
    pod: Pod, expected: WhenFull
) -> None:
    assert expected is seating.when_full(pod)


def surplus(pod: Pod = D, *, seconds: float = 10, fresh: bool = True) -> Decision:
    dwelt = timedelta(seconds=seconds)
    view = replace(lives.view(RUNS), fresh=fresh)
    return members.surplus(pod, RUNS, view, Deadlines(), dwelt=dwelt)


def test_a_surplus_member_that_waits_is_told_why_once() -> None:
    assert seating.is_surplus(RUNS, [*FULL, D], group(D))
    (tell,) = surplus().actions
    assert isinstance(tell, Tell)
    assert ("GangFull", None, False) == (tell.reason, tell.job_id, tell.allocated)
    assert "Slurm job 7 of its gang has 3 slots, and none for this pod" in tell.message

    assert not members.has(surplus(lives.told(D, tell)), Tell)


@pytest.mark.parametrize(("seconds", "fresh"), [(1, True), (10, False)])
def test_it_is_told_nothing_at_once_or_on_an_old_view(seconds: float, fresh: bool) -> None:
    decision = surplus(seconds=seconds, fresh=fresh)
    assert not members.has(decision, Tell)
    assert decision.retry_after is not None


def test_a_pod_that_waits_takes_the_slot_of_the_next_that_goes() -> None:
    gone = [FULL[0], FULL[2], D]
    group_ = workload.evaluate([(membership(D), D)])
    assert {uid(D): 1} == {
        pod: seat.slot for pod, seat in seating.seats(RUNS, gone, group_).items()
    }


# --- slots kept for pods that are yet to come ------------------------------------------------------------------------

LIMIT = timedelta(minutes=10)
KEPT = job(JobPhase.RUNNING, running("a", 0))
"""Three slots, for one of which somebody came."""
BEGAN = KEPT.started_at or NOW


def ended_after(
    since: timedelta,
    *pods: Pod,
    there: SlurmJob = KEPT,
    fresh: bool = True,
    limit: timedelta | None = LIMIT,
) -> dict[str, Decision]:
    own = Decision(actions=(), reason="runs", retry_after=timedelta(hours=2))
    members = [
        Member(
            pod=pod, row=row_of(pod, node_is_gone=False), job=there, decision=own, is_fresh=fresh
        )
        for pod in pods
    ]
    answers = {pod.uid: own for pod in pods}
    policy = Deadlines(kept_slots_deadline=limit)
    found = endings.ended_for_unused_slots(members, answers, policy, BEGAN + since)
    return {pod.name: found[pod.uid] for pod in pods if pod.uid in found}


def test_a_gang_whose_slots_stay_empty_ends_with_all_its_pods() -> None:
    named = replace(KEPT.identity, pods=(uid(A), uid(B)))
    found = ended_after(LIMIT, *FULL[:2], there=replace(KEPT, identity=named))
    assert {"a", "b"} == found.keys()
    for decision in found.values():
        (evict,) = decision.actions
        assert isinstance(evict, Evict)
        assert evict.cause is Cause.INCOMPLETE
        assert not evict.cause.is_disruption
        assert "1 of the 3 slots of Slurm job 7 were kept for 600 s" in evict.message


def test_so_does_one_whose_last_member_cannot_be_placed() -> None:
    """Its pin is refused, or there is no room for it: it has a name in the placeholder, and no node."""
    early = replace(C, created_at=BEGAN - timedelta(seconds=1))
    replaced = replace(C, created_at=BEGAN + timedelta(minutes=5))

    assert {"a", "b"} == {
        name
        for name, its in ended_after(LIMIT, *FULL[:2], early, there=RUNS).items()
        if its.actions
    }
    assert {} == ended_after(LIMIT, *FULL[:2], replaced, there=RUNS)


def test_until_then_it_is_looked_at_when_its_time_is_over() -> None:
    (decision,) = ended_after(LIMIT - timedelta(seconds=7), FULL[0]).values()
    assert ((), timedelta(seconds=7)) == (decision.actions, decision.retry_after)


@pytest.mark.parametrize(
    ("pods", "there", "fresh", "limit"),
    [
        pytest.param(FULL, RUNS, True, LIMIT, id="all have come"),
        pytest.param(FULL[:1], RUNS, True, LIMIT, id="all have come, and two are gone"),
        pytest.param(FULL, KEPT, True, LIMIT, id="they are there, and not named yet"),
        pytest.param(FULL[:1], KEPT, False, LIMIT, id="the view is old"),
        pytest.param(FULL[:1], KEPT, True, None, id="the settings let them wait for ever"),
        pytest.param(
            FULL[:1], job(JobPhase.PAUSED, FULL[0]), True, LIMIT, id="it is suspended meanwhile"
        ),
    ],
)
def test_nobody_is_evicted_where(
    pods: list[Pod],
    there: SlurmJob,
    fresh: bool,
    limit: timedelta | None,
) -> None:
    assert {} == ended_after(2 * LIMIT, *pods, there=there, fresh=fresh, limit=limit)
