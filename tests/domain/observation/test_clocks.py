"""Which clock counts."""

from datetime import timedelta

import pytest

from bridge.domain.observation import clocks
from bridge.domain.observation.clocks import ClockReading
from tests.make.lives import NOW

HOUR = timedelta(hours=1)


def reference(took_s: float = 0.0) -> ClockReading:
    """What slurmctld said 100 s after the monotonic clock began; it is right."""
    return ClockReading(reported=NOW, asked_s=100.0 - took_s, answered_s=100.0)


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_slurms_time_counts_while_our_clock_is_wrong(off: timedelta) -> None:
    later = timedelta(seconds=30)

    assert NOW + later == clocks.trusted(NOW + later + off, 130.0, reference())


def test_a_jump_of_our_clock_since_slurm_was_asked_counts_at_once() -> None:
    assert NOW == clocks.trusted(NOW, 100.0, reference())
    assert NOW + timedelta(seconds=1) == clocks.trusted(NOW + HOUR, 101.0, reference())


@pytest.mark.parametrize("off_s", [0.0, 5.9, -4.9])
def test_our_own_clock_counts_while_both_agree(off_s: float) -> None:
    ours = NOW + timedelta(seconds=off_s)

    assert ours == clocks.trusted(ours, 100.0, reference())


def test_our_own_clock_counts_where_slurms_is_unknown() -> None:
    assert NOW + HOUR == clocks.trusted(NOW + HOUR, 100.0, None)


def test_an_answer_that_took_long_is_no_clock_that_is_wrong() -> None:
    assert 0.0 == reference(took_s=20.0).skew_s(NOW + timedelta(seconds=20), 100.0)
