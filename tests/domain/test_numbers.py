from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmruntime.values import numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("0" * 5000 + "7", 7),
        (str(numbers.MOST), numbers.MOST),
        (str(numbers.MOST + 1), None),
        ("9" * 5000, None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1_000", None),
        (" 1", None),
        ("٣", None),
        ("²", None),
    ],
)
def test_only_decimal_digits_up_to_a_bound_are_a_number(text: str, number: int | None) -> None:
    assert number == numbers.integer(text)


@given(st.integers(), st.datetimes(timezones=st.just(UTC)))
def test_every_number_of_seconds_can_be_taken_off_every_moment(told: int, at: datetime) -> None:
    span = timedelta(seconds=numbers.seconds(told))

    assert numbers.moment(at) - span < numbers.moment(at) + span + timedelta(seconds=1)
