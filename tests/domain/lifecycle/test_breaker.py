"""When too many pods would go at once, and what then becomes of each."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.lifecycle import breaker
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Cause, Evict, Tell
from bridge.domain.lifecycle.breaker import Held, Limits, Tally
from bridge.domain.lifecycle.decision import Decision, Facts
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import View
from tests.make import lives as build
from tests.make.lives import NOW

LIMITS = Limits(share=0.3, always=20)


@pytest.mark.parametrize(
    ("tally", "expected"),
    [
        pytest.param(Tally(10, 10), False, id="all of a few"),
        pytest.param(Tally(20, 20), False, id="as many as may always go"),
        pytest.param(Tally(21, 21), True, id="one more"),
        pytest.param(Tally(1000, 300), False, id="the share"),
        pytest.param(Tally(1000, 301), True, id="more than the share"),
        pytest.param(Tally(0, 0), False, id="nothing runs"),
    ],
)
def test_too_much_is_more_than_both_limits(tally: Tally, expected: bool) -> None:
    assert expected is tally.is_too_much(LIMITS)


@pytest.mark.parametrize(
    ("pod", "job", "expected"),
    [
        pytest.param(build.bound(), build.job(), Tally(1, 0), id="runs"),
        pytest.param(build.bound(), build.job(JobPhase.PAUSED), Tally(1, 0), id="suspended"),
        pytest.param(build.bound(), build.waiting(), Tally(1, 0), id="waits again"),
        pytest.param(build.bound(), build.ended(JobEnd.CANCELLED), Tally(1, 1), id="cancelled"),
        pytest.param(build.bound(), build.ended(JobEnd.NODE_FAIL), Tally(1, 1), id="node failed"),
        pytest.param(build.bound(), build.ended(JobEnd.TIMEOUT), Tally(1, 0), id="time limit"),
        pytest.param(build.bound(), None, Tally(1, 1), id="unknown to Slurm"),
        pytest.param(
            replace(build.bound(), start_time=NOW - timedelta(seconds=10)),
            None,
            Tally(1, 0),
            id="not read yet",
        ),
        pytest.param(
            build.deleting(build.bound()),
            build.ended(JobEnd.CANCELLED),
            Tally(1, 1),
            id="on its way out for it",
        ),
        pytest.param(
            build.deleting(build.bound()), build.job(), Tally(1, 0), id="deleted by somebody"
        ),
        pytest.param(build.placed(), build.ended(JobEnd.CANCELLED), Tally(0, 0), id="not bound"),
        pytest.param(build.succeeded(), build.ended(JobEnd.CANCELLED), Tally(0, 0), id="over"),
    ],
)
def test_a_running_pod_without_a_live_placeholder_is_counted(
    pod: Pod, job: SlurmJob | None, expected: Tally
) -> None:
    assert expected == breaker.tally([(pod, job)], NOW)


def decide(pod: Pod, view: View, *, held: bool = True) -> Decision:
    facts = Facts(pod=pod, view=view, now=NOW, evictions_held=held, kube_node=build.KUBE_NODE)
    return lifecycle.decide(facts, build.POLICY)


def test_what_slurm_ended_stays_and_is_told_so_while_the_breaker_is_open() -> None:
    view = build.view(build.ended(JobEnd.CANCELLED))

    held = decide(build.bound(), view)
    goes = decide(build.bound(), view, held=False)

    (tell,) = held.actions
    assert isinstance(tell, Tell)
    assert ("EvictionHeldBack", False) == (tell.reason, tell.allocated)
    assert held.retry_after is not None
    assert isinstance(goes.actions[0], Evict)


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(build.placed(), build.ended(JobEnd.CANCELLED), id="it never ran"),
        pytest.param(build.bound(), build.ended(JobEnd.TIMEOUT), id="its own time limit"),
    ],
)
def test_the_breaker_is_no_concern_of(pod: Pod, job: SlurmJob) -> None:
    assert isinstance(decide(pod, build.view(job)).actions[0], Evict)


def test_every_cause_is_slurms_word_or_the_pods_own() -> None:
    own = {cause for cause in Cause if not cause.is_on_slurms_word}

    a_siblings = Cause.MEMBER_FAILED
    assert {
        Cause.TIME_LIMIT,
        Cause.NOT_BOUND,
        Cause.NOT_STARTED,
        Cause.SUSPENDED,
        a_siblings,
        Cause.INCOMPLETE,
    } == own


def test_the_operators_word_is_a_moment_with_its_zone() -> None:
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)

    assert noon == breaker.evict_until(" 2026-05-04T12:00:00Z")
    assert noon == breaker.evict_until("2026-05-04T14:00:00+02:00")
    for wrong in ("yes", "2026-05-04T12:00:00"):
        with pytest.raises(ValueError, match=wrong):
            breaker.evict_until(wrong)


@pytest.mark.parametrize(
    ("tallies", "expected"),
    [
        pytest.param({"a": Tally(40, 20), "b": Tally(60, 1)}, None, id="few of each"),
        pytest.param(
            {"a": Tally(40, 21), "b": Tally(0, 0)},
            Held(Tally(40, 21)),
            id="there is one user only",
        ),
        pytest.param(
            {"a": Tally(40, 40), "b": Tally(60, 5)},
            Held(Tally(40, 40), frozenset({"a"})),
            id="one user has lost many",
        ),
        pytest.param(
            {"a": Tally(40, 40), "b": Tally(60, 30)},
            Held(Tally(100, 70)),
            id="others have lost too many as well",
        ),
        pytest.param(
            {user: Tally(10, 10) for user in "abcd"},
            Held(Tally(40, 40)),
            id="few of each, and all together",
        ),
        pytest.param(
            {"a": Tally(25, 25), "b": Tally(30, 30), "c": Tally(500, 0)},
            Held(Tally(55, 55), frozenset({"a", "b"})),
            id="two users have lost many",
        ),
    ],
)
def test_one_users_losses_hold_back_nobody_elses_evictions(
    tallies: dict[str, Tally], expected: Held | None
) -> None:
    assert expected == breaker.held(tallies, LIMITS)


def test_each_pod_counts_for_its_user() -> None:
    pods = [
        ("a", build.bound(), build.ended()),
        ("a", build.bound(), build.job()),
        ("b", build.bound(), None),
    ]

    assert {"a": Tally(2, 1), "b": Tally(1, 1)} == breaker.tallies(pods, NOW)
