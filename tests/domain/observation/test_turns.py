"""Whose turn it is to be looked at."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from bridge.domain.observation.turns import LimitRoundRobin, ReasonRoundRobin
from slurmruntime.values.ids import JobId
from tests.make import lives as build

STEP_S = 0.5


def asked(count: int, *, seconds: float) -> Iterator[tuple[float, JobId]]:
    """Who is asked about when, of so many that wait all the time, read twice a second."""
    turns = ReasonRoundRobin(first_per_s=20, after_s=2)
    jobs = [replace(build.waiting(), id=JobId(n)) for n in range(count)]
    for step in range(int(seconds / STEP_S)):
        at = step * STEP_S
        yield from ((at, job) for job in turns.due(iter(jobs), at))


def test_few_are_asked_about_every_five_seconds_from_two_on() -> None:
    moments: dict[JobId, list[float]] = {}
    for at, job in asked(80, seconds=60):
        moments.setdefault(job, []).append(at)

    assert 80 == len(moments)
    assert all(2 <= times[0] <= 7 for times in moments.values())
    gaps = [b - a for times in moments.values() for a, b in pairwise(times)]
    assert max(gaps) <= 6.5


def test_two_hundred_cost_two_a_second() -> None:
    late = [at for at, _ in asked(200, seconds=120) if at >= 20]

    assert 2 == pytest.approx(len(late) / 100, rel=0.15)


@pytest.mark.parametrize("count", [700, 3000])
def test_each_has_its_turn_within_five_minutes(count: int) -> None:
    last: dict[JobId, float] = {}
    longest = 0.0
    for at, job in asked(count, seconds=700):
        if job in last:
            longest = max(longest, at - last[job])
        last[job] = at

    assert count == len(last)
    assert longest <= 300 + 30


def test_slurm_is_never_asked_more_than_twenty_times_a_second() -> None:
    per_second = Counter(int(at) for at, _ in asked(10_000, seconds=60))

    assert max(per_second.values()) <= 20


def test_who_no_longer_waits_is_forgotten() -> None:
    turns = ReasonRoundRobin(first_per_s=20, after_s=0)
    job = build.waiting()
    assert (job.id,) == turns.due([job], 1.0)
    assert () == turns.due([], 10.0)

    assert (job.id,) == turns.due([job], 10.5)


def test_a_limit_is_read_again_after_a_while() -> None:
    turns, job = LimitRoundRobin(), JobId(1)
    seen = [now for now in range(1, 70) if turns.due([job], float(now))]

    assert [21, 41, 61] == seen


def test_some_limits_are_read_one_a_second_those_first_for_whom_it_is_longest_ago() -> None:
    turns, ids = LimitRoundRobin(), [JobId(n) for n in range(300)]
    turns.due(ids, 1.0)
    turns.due(ids, 100.0)
    seconds = [turns.due(ids, 101.0 + n) for n in range(900)]

    assert {1} == {len(read) for read in seconds}
    assert set(ids) == {job for read in seconds[:300] for job in read}
    assert seconds[:300] == seconds[300:600]


@pytest.mark.parametrize(("jobs", "step_s"), [(1000, 0.3), (3000, 1), (5000, 4)])
def test_of_many_limits_each_is_read_within_five_minutes(jobs: int, step_s: float) -> None:
    turns, ids = LimitRoundRobin(), [JobId(n) for n in range(jobs)]
    turns.due(ids, 1.0)
    read_at: dict[JobId, float] = {}
    gaps_s = list[float]()
    for step in range(round(1200 / step_s)):
        now = 2.0 + step * step_s
        for job in turns.due(ids, now):
            gaps_s.append(now - read_at.get(job, 0.0))
            read_at[job] = now

    assert set(ids) == read_at.keys()
    assert max(gaps_s) <= 325, "the first look is 20 s late, as none is read twice in that time"


def test_no_more_than_twenty_limits_are_read_a_second() -> None:
    turns, ids = LimitRoundRobin(), [JobId(n) for n in range(60_000)]
    turns.due(ids, 1.0)
    counts = [len(turns.due(ids, 100.0 + n)) for n in range(60)]

    assert 100 == counts[0], "five seconds' worth after a break"
    assert {20} == {*counts[1:]}


def test_a_round_catches_up_with_little_at_once() -> None:
    turns, ids = LimitRoundRobin(), [JobId(n) for n in range(10)]
    turns.due(ids, 0.0)

    assert 5 == len(turns.due(ids, 10_000.0))
    assert () == turns.due(ids, 10_000.1)


def test_a_job_that_does_not_run_any_more_is_forgotten() -> None:
    turns, job = LimitRoundRobin(), JobId(1)
    turns.due([job], 1.0)
    turns.due([], 15.0)

    assert not any(turns.due([job], float(now)) for now in range(16, 36))
