"""A result is believed for a while, and whoever comes back when that is over does find it over."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.recent import RecentResults

MOMENTS = st.floats(min_value=0, max_value=1e9)


@given(at_s=MOMENTS, later_s=st.floats(min_value=0, max_value=60))
def test_the_delay_until_a_result_is_forgotten_is_never_zero(at_s: float, later_s: float) -> None:
    now_s = at_s
    results = RecentResults[str, bool](lambda: now_s)
    results.put("uid", "question", result=True, lasts=timedelta(minutes=1))
    now_s = at_s + later_s
    if results.of("uid", "question"):
        remaining = results.remaining("uid")
        assert timedelta(0) < remaining <= timedelta(minutes=1, milliseconds=1)
        now_s += remaining.total_seconds() + 1e-6 + at_s * 1e-15
        assert results.of("uid", "question") is None
