"""Whatever happens, the contracts hold, and left alone the world settles."""

import os

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.properties.settling import settle
from tests.properties.storm import Storm

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SLURM_BRIDGE_WORLDS", "300"))
"""How many histories; the same ones every time, unless somebody asks for a number."""


@pytest.mark.parametrize("extender_binds", [False, True], ids=["kube-scheduler", "extender"])
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SLURM_BRIDGE_WORLDS" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_the_world_keeps_its_contracts_and_settles(
    data: st.DataObject, *, extender_binds: bool
) -> None:
    storm = Storm(lambda among: data.draw(st.sampled_from(among)), extender_binds=extender_binds)
    storm.begin()
    try:
        for _ in range(data.draw(st.integers(0, 40), label="steps")):
            storm.step()
        settle(storm.stage)
    finally:
        note(str(storm))
