"""A configuration that takes long to read: the loop turns meanwhile, for all other objects and for the lease."""

import asyncio
import threading

import pytest

from slurmoperator.daemons import planning
from slurmoperator.daemons.situation import DaemonFacts, PartPlan
from slurmruntime.process.clock import SystemClock
from tests.slurmoperator.daemons.peers import Leaders, controller, part

DEADLINE_S = 20.0


def test_the_loop_turns_while_a_plan_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = threading.Event()
    plan = planning.plan
    seen: list[bool] = []

    def plan_slowly(facts: DaemonFacts) -> PartPlan:
        if facts.part.metadata.name == "slow":
            seen.append(turned.wait(DEADLINE_S))
        return plan(facts)

    async def main() -> None:
        leaders = Leaders(SystemClock())
        leaders.api.put(controller())
        leaders.api.put(part("Controller", "slow", accountingRef=..., prologScriptRefs=...))
        await leaders.lead(for_s=2, then={0.5: turned.set})
        assert "True" == leaders.api.condition("Controller", "Accepted")[0]

    monkeypatch.setattr(planning, "plan", plan_slowly)
    asyncio.run(main())
    assert seen
    assert all(seen)
