"""What is remembered of pods that could not be bound."""

from datetime import UTC, datetime, timedelta

from bridge.domain.observation.binding import LASTS, BindFailure, BindFailures
from slurmruntime.values.ids import SlurmNode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = SlurmNode("s1")


def test_evictions_are_remembered_for_their_controller_and_an_hour() -> None:
    known = BindFailures()
    known.note("job", NODE, NOW)

    assert (BindFailure(NODE, NOW),) == known.lately("job", NOW + LASTS - timedelta(seconds=1))
    assert () == known.lately("job", NOW + LASTS)
    assert () == known.lately("other", NOW)


def test_no_number_of_controllers_or_evictions_costs_much() -> None:
    known = BindFailures()
    for number in range(10_000):
        known.note(f"job-{number}", NODE, NOW)
        known.note("job", NODE, NOW)

    assert len(known.lately("job", NOW)) <= 16
    assert () == known.lately("job-0", NOW)
