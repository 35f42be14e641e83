"""A gang's placement under Hypothesis."""

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.properties.gang_world import STEPS, World
from tests.properties.switched_gang import SwitchedWorld


@pytest.mark.parametrize("kind", [World, SwitchedWorld], ids=["two on a node", "switches"])
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_a_gang_gets_its_places_whatever_goes_wrong(kind: type[World], data: st.DataObject) -> None:
    world = kind(lambda among: data.draw(st.sampled_from(among)))
    try:
        world.live_through(data.draw(st.integers(0, STEPS), label="steps"))
    finally:
        note("; ".join(world.story))
