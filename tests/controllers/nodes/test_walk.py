"""A look at a node goes through few modules, and through each of them once: gather, plan, act."""

from collections import Counter
from datetime import timedelta

import pytest

from controllers.nodes.controller import NodeController
from slurmruntime.values.ids import SlurmNode
from tests.controllers.nodes_situations import in_step, outset, slurm_node
from tests.make.situations import Situation, lived_through
from tests.make.trouble import Trouble
from tests.make.walks import walk

ROOMS = ("bridge.domain.nodes", "controllers.nodes")
WAY = {
    "controllers.nodes.controller",
    "controllers.nodes.gathering",
    "bridge.domain.nodes.hold",
    "bridge.domain.nodes.registration",
    "bridge.domain.nodes.state",
    "bridge.domain.nodes.spec",
    "controllers.nodes.actuator",
}


def last_look(there: Situation, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The entries of the last look that got as far as a plan."""
    reconcile, walks = NodeController.reconcile, []

    async def watched(controller: NodeController, name: SlurmNode) -> timedelta | None:
        with walk(*ROOMS) as entries:
            again = await reconcile(controller, name)
        if entries["bridge.domain.nodes.registration"]:
            walks.append(entries)
        return again

    monkeypatch.setattr(NodeController, "reconcile", watched)
    lived_through(there, Trouble())
    return walks[-1]


def test_a_look_at_a_node_at_rest_enters_seven_modules_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Situation("at rest", lambda: outset([in_step()], [slurm_node()]))

    assert dict.fromkeys(WAY, 1) == dict(last_look(there, monkeypatch))


def test_so_does_one_at_a_node_that_is_cordoned(monkeypatch: pytest.MonkeyPatch) -> None:
    cordoned = slurm_node("k1", "DRAIN", reason="slurm-bridge: cordoned in Kubernetes")
    there = Situation("cordoned", lambda: outset([in_step(unschedulable=True)], [cordoned]))

    assert dict.fromkeys(WAY, 1) == dict(last_look(there, monkeypatch))
