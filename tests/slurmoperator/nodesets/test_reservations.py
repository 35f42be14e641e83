"""When workers may be replaced in a reservation, and what becomes of that."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.nodesets.windows.reservations import (
    ReservationStep,
    UpdateTimes,
    desired_reservation,
    next_window,
    step,
)
from slurmruntime.model.nodes import NodeReservation

THURSDAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
NAME = "SlurmOperatorMaint-gpu"


def times(*flags: str, duration: timedelta = HOUR) -> UpdateTimes:
    return UpdateTimes(start=THURSDAY, duration=duration, flags=frozenset(flags))


@pytest.mark.parametrize(
    ("flags", "now", "begins"),
    [
        ((), THURSDAY - DAY, THURSDAY),
        ((), THURSDAY, THURSDAY),
        ((), THURSDAY + HOUR - SECOND, THURSDAY),
        ((), THURSDAY + HOUR, None),
        (("DAILY",), THURSDAY - DAY, THURSDAY),
        (("DAILY",), THURSDAY + HOUR - SECOND, THURSDAY),
        (("DAILY",), THURSDAY + HOUR, THURSDAY + DAY),
        (("DAILY",), THURSDAY + 100 * DAY, THURSDAY + 100 * DAY),
        (("HOURLY",), THURSDAY + 5 * HOUR, THURSDAY + 5 * HOUR),
        (("WEEKLY", "REPLACE"), THURSDAY + DAY, THURSDAY + 7 * DAY),
        (("WEEKDAY",), THURSDAY + DAY + 2 * HOUR, THURSDAY + 4 * DAY),
        (("WEEKEND",), THURSDAY, THURSDAY + 2 * DAY),
        (("WEEKDAY", "WEEKEND"), THURSDAY, None),
    ],
)
def test_the_window_is_the_one_that_is_open_or_comes_next(
    flags: tuple[str, ...], now: datetime, begins: datetime | None
) -> None:
    expected = None if begins is None else (begins, begins + HOUR)
    assert expected == next_window(times(*flags), now)


def test_a_length_is_rounded_up_to_minutes() -> None:
    assert [1, 1, 2] == [times(duration=each).minutes for each in (SECOND, MINUTE, MINUTE + SECOND)]


@pytest.mark.parametrize("late", [timedelta(0), SECOND, 30 * MINUTE, HOUR - SECOND])
def test_what_is_left_of_a_window_is_asked_for_and_ends_with_it(late: timedelta) -> None:
    now = THURSDAY + late
    found = desired_reservation(times("DAILY"), name=NAME, nodes={"gpu-0"}, now=now)
    assert found is not None
    assert THURSDAY + HOUR == found.end
    assert now - MINUTE < found.start <= now
    assert timedelta(0) == (found.end - found.start) % MINUTE
    assert {"MAINT", "IGNORE_JOBS", "DAILY"} == found.flags


def test_without_a_schedule_without_workers_and_afterwards_there_is_none() -> None:
    assert None is desired_reservation(None, name=NAME, nodes={"gpu-0"}, now=THURSDAY)
    assert None is desired_reservation(times(), name=NAME, nodes=(), now=THURSDAY)
    assert None is desired_reservation(times(), name=NAME, nodes={"gpu-0"}, now=THURSDAY + HOUR)


def reservation(*nodes: str, end: datetime = THURSDAY + HOUR, flags: str = "") -> NodeReservation:
    return NodeReservation(
        name=NAME,
        start=THURSDAY,
        end=end,
        nodes=frozenset(nodes),
        flags=frozenset(("MAINT", *flags.split())),
    )


@pytest.mark.parametrize(
    ("found", "needed", "expected"),
    [
        (None, None, ReservationStep.NOTHING),
        (None, reservation("a"), ReservationStep.SAVE),
        (reservation("a"), None, ReservationStep.DELETE),
        (reservation("a"), reservation("a"), ReservationStep.NOTHING),
        (reservation("a", flags="SPEC_NODES"), reservation("a"), ReservationStep.NOTHING),
        (reservation("a", "b"), reservation("a"), ReservationStep.NOTHING),  # one is replaced
        (reservation("a"), reservation("a", "b"), ReservationStep.EXTEND),
        (reservation("a"), reservation("a", end=THURSDAY + DAY), ReservationStep.DELETE),
        (reservation("a"), reservation("a", flags="DAILY"), ReservationStep.DELETE),
    ],
)
def test_slurm_comes_to_what_is_needed(
    found: NodeReservation | None, needed: NodeReservation | None, expected: ReservationStep
) -> None:
    assert expected is step(found, needed)


FLAGS = st.frozensets(st.sampled_from(["HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND"]))
SPANS = st.timedeltas(timedelta(days=-400), timedelta(days=400))


@given(FLAGS, st.timedeltas(SECOND, 2 * DAY), SPANS)
def test_a_window_is_never_over_and_what_was_made_of_it_is_as_needed(
    flags: frozenset[str], duration: timedelta, passed: timedelta
) -> None:
    now = THURSDAY + passed
    given_times = UpdateTimes(start=THURSDAY, duration=duration, flags=flags)
    found = next_window(given_times, now)
    if found is not None:
        begin, end = found
        assert end > now
        assert begin >= THURSDAY
        assert end - begin == given_times.minutes * MINUTE
    needed = desired_reservation(given_times, name=NAME, nodes={"a"}, now=now)
    assert (found is None) == (needed is None)
    assert ReservationStep.NOTHING is step(needed, needed)
