"""Whatever is known of a node, however it contradicts itself: there is a plan, and it does no harm on doubt."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.nodes.decision import NodeFacts, NodeSettings
from tests.make import node_facts
from tests.make.node_facts import Chance
from tests.properties.node_plans import RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@given(st.integers(0, 2**32))
def test_of_every_plan_it_is_true_that(
    rule: Callable[[NodeFacts, NodeSettings], None], seed: int
) -> None:
    chance = Chance(random.Random(seed).choice)  # noqa: S311  # nobody has to be unable to guess it
    for _ in range(3):
        rule(node_facts.facts(chance), node_facts.settings(chance))
