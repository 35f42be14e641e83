"""A gang's placement under Hypothesis."""

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.properties.gang_world import STEPS, World


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_a_gang_gets_its_places_whatever_goes_wrong(data: st.DataObject) -> None:
    world = World(lambda among: data.draw(st.sampled_from(among)))
    try:
        world.live_through(data.draw(st.integers(0, STEPS), label="steps"))
    finally:
        note("; ".join(world.story))
