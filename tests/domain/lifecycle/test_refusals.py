"""Refused submits, counted until one is accepted."""

from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.refusals import Refusals

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_refusals_are_counted_for_each_until_they_are_cleared() -> None:
    refusals: Refusals[str] = Refusals()
    later = NOW + timedelta(seconds=3)

    refusals.add("one", "Invalid qos", at=NOW)
    refusals.add("other", "No such user", at=NOW)
    added = refusals.add("one", "Invalid account", at=later)

    assert (
        SubmitRefusal(attempts=2, at=later, text="Invalid account") == added == refusals.get("one")
    )
    refusals.clear("one")
    assert refusals.get("one") is None
    assert SubmitRefusal(attempts=1, at=NOW, text="No such user") == refusals.get("other")
    assert 1 == refusals.add("one", "Invalid qos", at=later).attempts


def test_clearing_what_was_never_refused_is_no_fault() -> None:
    Refusals[str]().clear("nobody")
