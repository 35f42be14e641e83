"""Which volumes go after a scale-in, and when."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.nodesets.volumes.unneeded import PATIENCE, OrdinalClaim, plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def held(number: int, for_: timedelta | None) -> OrdinalClaim:
    """A claim, with a mark of that age."""
    since = None if for_ is None else NOW - for_
    return OrdinalClaim(name=f"data-gpu-{number}", number=number, unneeded_since=since)


@pytest.mark.parametrize(
    ("age", "needed", "expected", "requeue_after"),
    [
        (None, [1], "", None),
        (None, [0], "marked", PATIENCE),
        (PATIENCE - SECOND, [0], "", SECOND),
        (PATIENCE, [0], "deleted", None),
        (PATIENCE, [1], "unmarked", None),
        (-PATIENCE, [0], "", 2 * PATIENCE),  # by a clock that was ahead
    ],
)
def test_a_volume_goes_when_its_number_has_not_been_wanted_for_a_while(
    age: timedelta | None, needed: list[int], expected: str, requeue_after: timedelta | None
) -> None:
    found = plan([held(1, age)], needed=needed, now=NOW)
    names = {part: getattr(found, part) for part in ("marked", "unmarked", "deleted")}
    assert {expected} - {""} == {part for part, each in names.items() if each}
    assert {"data-gpu-1"} >= frozenset().union(*names.values())
    assert requeue_after == found.requeue_after


AGES = st.none() | st.timedeltas(timedelta(days=-1), timedelta(days=1))


@given(st.dictionaries(st.integers(0, 9), AGES, max_size=10), st.frozensets(st.integers(0, 9)))
def test_none_that_is_needed_goes_and_none_without_an_old_mark(
    ages: dict[int, timedelta | None], needed: Collection[int]
) -> None:
    found = plan([held(*each) for each in ages.items()], needed=needed, now=NOW)
    for number, age in ages.items():
        name = f"data-gpu-{number}"
        is_old = age is not None and age >= PATIENCE
        assert (name in found.deleted) == (is_old and number not in needed)
        assert (name in found.marked) == (age is None and number not in needed)
        assert (name in found.unmarked) == (age is not None and number in needed)
