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


def test_where_lists_are_slow_slurm_rests_the_longer_the_longer_nothing_of_ours_happens() -> None:
    assert [0, 2, 9.5, 9.5] == [PACE.rest_s(listed_s=0.5, calm_s=s) for s in (0, 20, 95, 3600)]


@given(SECONDS, SECONDS)
def test_a_list_costs_a_twentieth_of_the_time_at_most_unless_news_would_grow_stale(
    listed_s: float, calm_s: float
) -> None:
    rest_s = PACE.rest_s(listed_s=listed_s, calm_s=calm_s)

    assert rest_s <= min(19 * listed_s, 10)
    assert rest_s <= calm_s / 10 + 1e-9
