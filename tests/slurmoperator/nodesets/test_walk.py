"""A look at a NodeSet goes through few modules, and through each of them once: gather, plan, act, report."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from slurmoperator.nodesets.loop import NodeSetLoop
from tests.make.walks import walk
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, node_set
from tests.virtual_time import VirtualClock, run

ROOM = "slurmoperator.nodesets"
LOOP = f"{ROOM}.loop"
WAY = {
    LOOP: 1,
    f"{ROOM}.gathering": 1,
    f"{ROOM}.plan.admission": 1,
    f"{ROOM}.preparation": 1,
    f"{ROOM}.plan.planning": 1,
    f"{ROOM}.views": 1,
    f"{ROOM}.actuator": 1,
    f"{ROOM}.plan.status": 1,
}


def last_look(
    monkeypatch: pytest.MonkeyPatch, then: Mapping[str, Any] | None = None
) -> Counter[str]:
    """The entries of the last look at a NodeSet that has come to rest."""
    reconcile, walks = NodeSetLoop.reconcile, []

    async def watched(loop: NodeSetLoop, key: str) -> timedelta | None:
        with walk(ROOM, by=LOOP) as entries:
            again = await reconcile(loop, key)
        walks.append(entries)
        return again

    async def scenario(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("NodeSet", "gpu", spec=then or {})
        await operator.lead(for_s=5.0)

    monkeypatch.setattr(NodeSetLoop, "reconcile", watched)
    run(scenario)
    return walks[-1]


def test_a_look_at_a_node_set_at_rest_enters_eight_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dict(last_look(monkeypatch)) == WAY


def test_so_does_one_at_a_node_set_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    image = {"image": "example.test/slurmd:2"}

    assert dict(last_look(monkeypatch, then={"slurmd": image})) == WAY
