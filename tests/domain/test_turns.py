"""Whose turn it is to be looked at."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from bridge.domain.ids import JobId
from bridge.domain.turns import Round, Turns
from tests.domain import lifecycle_builders as build

STEP_S = 0.5


def asked(count: int, *, seconds: float) -> Iterator[tuple[float, JobId]]:
    """Who is asked about when, of so many that wait all the time, read twice a second."""
    turns = Turns(first_per_s=20, after_s=2)
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
    for at, job in asked(count, seconds=900):
        if job in last:
            longest = max(longest, at - last[job])
        last[job] = at

    assert count == len(last)
    assert longest <= 300 + 30


def test_slurm_is_never_asked_more_than_twenty_times_a_second() -> None:
    per_second = Counter(int(at) for at, _ in asked(10_000, seconds=60))

    assert max(per_second.values()) <= 20


def test_who_no_longer_waits_is_forgotten() -> None:
    turns = Turns(first_per_s=20, after_s=0)
    job = build.waiting()
    assert (job.id,) == turns.due([job], 1.0)
    assert () == turns.due([], 10.0)

    assert (job.id,) == turns.due([job], 10.5)


def test_a_round_goes_by_ascending_ids_and_begins_anew() -> None:
    turns, ids = Round(), [JobId(n) for n in (3, 1, 2)]

    assert [(1, 2), (3, 1), (2, 3)] == [turns.due(ids, float(at)) for at in (1, 2, 3)]
