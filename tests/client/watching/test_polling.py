"""The pauses of a watch."""

import pytest

from slurmclient.watching.polling import pause_s


@pytest.mark.parametrize(
    ("failures", "expected_s"),
    [
        pytest.param(0, 1.0, id="none: the interval"),
        pytest.param(1, 2.0, id="one: twice the interval"),
        pytest.param(5, 30.0, id="more: half a minute at most"),
        pytest.param(10_000, 30.0, id="days without Slurm"),
    ],
)
def test_the_pause_doubles_with_each_failure_up_to_half_a_minute(
    failures: int, expected_s: float
) -> None:
    assert expected_s == pause_s(1.0, failures)


def test_a_long_interval_is_never_shortened() -> None:
    assert 300.0 == pause_s(300.0, 3)
