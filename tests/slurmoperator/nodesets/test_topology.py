"""A worker is in Slurm's topology where its Kubernetes node says."""

from typing import Any

import pytest
from typing_extensions import override

from slurmclient.errors import Declined
from tests.make.apiserver import Manifest
from tests.make.trouble import Trouble
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, Workers, names_of, node_set
from tests.virtual_time import VirtualClock, run

TOPOLOGY = "topology.slinky.slurm.net/spec"


def machine(name: str, said: str = "") -> Manifest:
    annotations = {TOPOLOGY: said} if said else {}
    moment = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "annotations": annotations, **moment},
        "spec": {},
    }


class Switches(Workers):
    """Knows two switches only, and counts who asks."""

    asked = 0

    @override
    def _change_node(self, operation: str, method: str, name: str, body: Any) -> None:
        if operation == "node.set_topology":
            self.asked += 1
            if body["topology_str"] not in ("topo:s1", "topo:s2"):
                raise Declined(operation, "Invalid topology", error_number=2178)
        super()._change_node(operation, method, name, body)


def places(operator: Operator) -> dict[str, str]:
    return {name: node.topology for name, node in operator.slurm.nodes.by_name.items()}


def annotate(operator: Operator, name: str, said: str) -> None:
    meta = operator.api.of("Node")[name]["metadata"]
    operator.api.change("Node", name, metadata={**meta, "annotations": {TOPOLOGY: said}})


def test_a_worker_is_where_its_node_says_and_moves_with_it() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.slurm = Switches(operator.trouble, ())
        operator.api.create(machine("machine-gpu-0", "topo:s1"))
        operator.api.create(machine("machine-gpu-1"))
        operator.slurm.register("gpu-1")
        operator.slurm.nodes.by_name["gpu-1"].topology = "topo:s2"  # as topology.yaml says
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        assert {"gpu-0": "topo:s1", "gpu-1": "topo:s2"} == places(operator)
        assert 1 == operator.slurm.asked

        await operator.lead(
            for_s=SETTLED_S, then={5.0: lambda: annotate(operator, "machine-gpu-0", "topo:s2")}
        )
        assert {"gpu-0": "topo:s2", "gpu-1": "topo:s2"} == places(operator)

    run(main)


@pytest.mark.parametrize("said", ["topo:typo", "s" * 2000])
def test_what_slurm_does_not_know_is_told_and_costs_nothing_else(said: str) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.slurm = Switches(Trouble(), ())
        operator.api.create(machine("machine-gpu-0", said))
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=4 * SETTLED_S)
        told = operator.api.condition("gpu", "Accepted")
        assert ("True", "PartlyServed") == (told["status"], told["reason"])
        assert f"node machine-gpu-0: annotation {TOPOLOGY}" in told["message"]
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        assert operator.slurm.asked <= 4

        annotate(operator, "machine-gpu-0", "topo:s1")
        await operator.lead(for_s=SETTLED_S)
        assert "topo:s1" == places(operator)["gpu-0"]
        assert "Accepted" == operator.api.condition("gpu", "Accepted")["reason"]

    run(main)
