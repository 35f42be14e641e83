"""What a NodeSet of many workers costs, by counts: two writes for a worker, and hardly anything when nothing is to be done."""

from collections import Counter
from datetime import timedelta

import pytest

from slurmoperator.nodesets.loop import NodeSetLoop
from slurmoperator.nodesets.plan import workers
from slurmoperator.nodesets.plan.look import NodeSetFacts
from slurmoperator.nodesets.plan.workers import Case
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, names_of, node_set
from tests.virtual_time import VirtualClock, run

WORKERS = 200
STATUSES = 12
"""Of the NodeSet: they follow what happens, and not each worker."""
OTHERS = 4
"""Finalizer, budget, revision, and room for one more."""


def test_a_worker_costs_two_writes_and_another_leader_none() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=WORKERS))
        await operator.lead(for_s=SETTLED_S)

        assert WORKERS == len(names_of(operator.api.pods))
        assert WORKERS == operator.api.status("gpu")["readyReplicas"]
        made = Counter(write.split("gpu-")[0] for write in operator.trouble.writes)
        creations = sum(
            n for what, n in made.items() if what.startswith("POST") and "/pods" in what
        )
        assert WORKERS == creations, made
        told = [write for write in operator.trouble.writes if "/pods/" in write]
        assert WORKERS == len(told), "once it is in Slurm, its pod is told so"
        others = len(operator.trouble.writes) - creations - len(told)
        assert others <= STATUSES + OTHERS, made

        before = len(operator.trouble.writes)
        await operator.lead(for_s=SETTLED_S)
        assert [] == operator.trouble.writes[before:]

    run(main)


def test_looks_at_rest_make_no_second_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take 3 ms of CPU for a hundred workers, and take less than one."""
    reconcile, case_of, done = NodeSetLoop.reconcile, workers.case_of, list[str]()

    async def look(loop: NodeSetLoop, key: str) -> timedelta | None:
        done.append("look")
        return await reconcile(loop, key)

    def plan(facts: NodeSetFacts) -> Case:
        done.append("plan")
        return case_of(facts)

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=300.0)

    monkeypatch.setattr(NodeSetLoop, "reconcile", look)
    monkeypatch.setattr(workers, "case_of", plan)
    run(main)

    assert ["look", "look"] == done[-2:], done
