"""`pruneSlurmNodeRecords`: Slurm forgets the workers of Kubernetes nodes that are gone, and nobody else."""

from typing import Any

import pytest

from tests.make.slurm import Job
from tests.make.slurm_nodes import Node
from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.given import machine, on_nodes
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, names_of
from tests.virtual_time import VirtualClock, run

PRUNES = "NodeNotFound"
OVER = ("DOWN", "DYNAMIC_NORM", "NOT_RESPONDING")


def leaves(operator: Operator, name: str, *states: str, **changes: Any) -> None:
    """Let Slurm have a node of a worker that is not there."""
    node = Node(name=name, states={*(states or OVER)}, features=("gpu",), **changes)
    operator.slurm.nodes.by_name[name] = node


def test_only_workers_of_nodes_that_are_gone_are_forgotten() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("a", "c.example"):
            operator.api.create(machine(name))
        operator.api.put(on_nodes(pruneSlurmNodeRecords=PRUNES))
        leaves(operator, "gone")
        leaves(operator, "outside", "IDLE", "DYNAMIC_NORM")
        await operator.lead(for_s=SETTLED_S)
        assert ["a", "c", "outside"] == sorted(operator.slurm.nodes.by_name)

        operator.api.change("Node", "a", spec={"unschedulable": True})
        operator.api.remove("Pod", "gpu-a")  # its node is only cordoned, and has no new worker
        leaves(operator, "a")
        await operator.lead(for_s=3 * SETTLED_S)
        assert "a" in operator.slurm.nodes.by_name
        operator.api.remove("Node", "a")
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["c", "outside"] == sorted(operator.slurm.nodes.by_name)
        assert ["gpu-c.example"] == names_of(operator.api.pods)

    run(main)


@pytest.mark.parametrize(
    "changes",
    [{}, {"pruneSlurmNodeRecords": PRUNES, "scalingMode": "StatefulSet"}],
)
def test_nobody_is_forgotten_unless_that_is_wanted(changes: dict[str, Any]) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(on_nodes(**changes))
        leaves(operator, "gone")
        await operator.lead(for_s=3 * SETTLED_S)
        assert "gone" in operator.slurm.nodes.by_name

    run(main)


def test_while_a_node_cannot_be_read_nobody_is_forgotten() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        odd = machine("a")
        odd["metadata"]["labels"] = ["no map"]
        operator.api.objects["/api/v1/nodes/a"] = odd
        odd["metadata"]["resourceVersion"] = "1"
        operator.api.put(on_nodes(pruneSlurmNodeRecords=PRUNES))
        leaves(operator, "gone")
        await operator.lead(for_s=3 * SETTLED_S)
        assert "gone" in operator.slurm.nodes.by_name

    run(main)


@pytest.mark.parametrize("requires", [True, False], ids=["required", "excluded"])
def test_a_node_that_a_live_job_names_is_not_forgotten(requires: bool) -> None:
    """At the next restart slurmctld would end a job that requires it, wherever it runs."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes(pruneSlurmNodeRecords=PRUNES))
        for name in ("gone", "gone-1", "gone-2"):
            leaves(operator, name)
        for job_id, state, names in ((7, "RUNNING", "gone-[1-9]"), (8, "COMPLETED", "gone")):
            job = Job(id=job_id, comment="", state=state, nodes="a")
            job.required, job.excluded = ((names,), ()) if requires else ((), (names,))
            operator.slurm.jobs[job_id] = job
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["a", "gone-1", "gone-2"] == sorted(operator.slurm.nodes.by_name)
        told = operator.api.condition("gpu", "Accepted")["message"]
        assert "node gone-1 stays in Slurm because job 7 names it" in told

        operator.slurm.jobs[7].state = "COMPLETED"
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["a"] == sorted(operator.slurm.nodes.by_name)

    run(main)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 10))
def test_whatever_write_fails_they_are_forgotten_and_nobody_else_is(fault: Fault, at: int) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        operator.api.create(machine("a"))
        operator.api.put(on_nodes(pruneSlurmNodeRecords=PRUNES))
        for name in ("gone", "other"):
            leaves(operator, name)
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["a"] == sorted(operator.slurm.nodes.by_name)
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert len(operator.trouble.writes) >= 9, "there are writes at which none failed"

    run(main)
