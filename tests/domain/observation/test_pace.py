"""How often Slurm is read."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.observation.pace import Pace

PACE = Pace(
    busy_s=0.5, idle_s=2, shortest_s=0.05, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
SECONDS = st.floats(min_value=0, max_value=1e9)


@given(SECONDS, SECONDS)
def test_the_longer_nothing_happens_the_rarer_within_limits(one: float, other: float) -> None:
    sooner, later = (PACE.while_waiting_s(calm_s=calm_s) for calm_s in sorted((one, other)))

    assert 0.5 <= sooner <= later <= 2


def test_news_is_at_most_a_tenth_later_than_what_was_before_it() -> None:
    assert [0.5, 0.5, 1, 2, 2] == [PACE.while_waiting_s(calm_s=s) for s in (0, 5, 10, 20, 3600)]
