"""Whichever write about a node goes wrong, in whichever way: nodes end as they would have without that.

Each case takes milliseconds. What the real servers make of it is seen in `tests/integration`.
"""

from typing import Any, get_args

import pytest

from bridge.domain.nodes import fillers
from bridge.domain.nodes.actions import (
    NodeAction,
)
from controllers.nodes.actuator import NodeActuator
from tests.controllers.nodes_situations import SITUATIONS, foreign_pod, marked, outset, shared
from tests.make.situations import (
    Situation,
    check_that_every_write_may_fail,
    lived_through,
)
from tests.make.trouble import Fault, Trouble

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_after_a_write_that_went_wrong_all_is_as_if_it_had_not(
    there: Situation, fault: Fault
) -> None:
    check_that_every_write_may_fail(there, fault)


def test_every_action_is_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    done: set[type[NodeAction]] = set()
    act = NodeActuator.act

    async def noted(hands: NodeActuator, action: NodeAction) -> bool:
        done.add(type(action))
        return await act(hands, action)

    monkeypatch.setattr(NodeActuator, "act", noted)
    for there in SITUATIONS:
        lived_through(there, Trouble())
    assert set(get_args(NodeAction)) == done


def test_what_a_node_needs_is_worked_out_again_only_after_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look at each node every second was a tenth of what the controllers cost."""
    decide, decided = fillers.decide, []

    def counting(*found: Any) -> tuple[fillers.FillerAction, ...]:
        decided.append(found)
        return decide(*found)

    monkeypatch.setattr(fillers, "decide", counting)
    there = Situation(
        "pods of others are on a machine with a slurmd",
        lambda: outset([shared(), foreign_pod(2)], [marked()]),
    )

    leader = lived_through(there, Trouble())

    assert [2] == [job.cpus_per_task for job in leader.slurm.jobs.values()]
    assert 2 <= len(decided) <= 12  # the nodes are read eight times meanwhile
