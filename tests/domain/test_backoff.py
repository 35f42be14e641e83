"""Delays double up to a cap and are measured from the last attempt."""

from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.observation.dwell import TimeInState
from slurmruntime.values import backoff

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(-1, 0), (0, 0), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (10**6, 60)],
)
def test_doubles_up_to_the_cap(attempts: int, seconds: int) -> None:
    assert timedelta(seconds=seconds) == backoff.delay(attempts, first=SECOND, cap=MINUTE)


@pytest.mark.parametrize(
    ("ago_s", "left_s"), [(0, 4), (1, 3), (4, 0), (100, 0)], ids=["now", "a second ago", "just over", "long over"]
)  # fmt: skip
def test_says_what_is_left(ago_s: int, left_s: int) -> None:
    left = backoff.left(3, NOW - ago_s * SECOND, NOW, first=SECOND, cap=MINUTE)

    assert timedelta(seconds=left_s) == left


class TestDwell:
    def test_begins_when_a_situation_is_first_seen(self) -> None:
        dwell = TimeInState()

        assert [dwell.since("a", 1, NOW), dwell.since("a", 1, NOW + SECOND)] == [NOW, NOW]

    def test_begins_anew_with_another_situation_and_when_the_first_returns(self) -> None:
        dwell = TimeInState()
        times = [NOW, NOW + SECOND, NOW + 2 * SECOND]

        assert times == [dwell.since("a", s, t) for s, t in zip([1, 2, 1], times, strict=True)]

    def test_keeps_pods_apart_and_forgets(self) -> None:
        dwell = TimeInState()
        dwell.since("a", 1, NOW)
        dwell.since("b", 1, NOW)
        dwell.forget("a")
        dwell.forget("a")

        later = NOW + SECOND
        assert (later, NOW) == (dwell.since("a", 1, later), dwell.since("b", 1, later))
