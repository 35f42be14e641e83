"""A worker whose pod or Kubernetes node is cordoned is drained, and comes back, whatever else its NodeSet wants."""

import pytest

from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, node_set
from tests.virtual_time import VirtualClock, run

ANNOTATION = "nodeset.slinky.slurm.net/pod-cordon"


def annotate(operator: Operator, value: str) -> None:
    found = operator.api.pods["gpu-0"]["metadata"]
    operator.api.change("Pod", "gpu-0", metadata={**found, "annotations": {ANNOTATION: value}})


@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
def test_a_pod_that_somebody_has_cordoned_stays_drained_until_that_is_lifted(strategy: str) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2, updateStrategy={"type": strategy}))
        await operator.lead(for_s=SETTLED_S)
        annotate(operator, "true")
        await operator.lead(for_s=300)
        node = operator.slurm.nodes.by_name["gpu-0"]
        assert "slurm-operator: its pod is cordoned" == node.reason
        assert "DRAIN" in node.states
        assert "DRAIN" not in operator.slurm.nodes.by_name["gpu-1"].states

        annotate(operator, "false")
        await operator.lead(for_s=SETTLED_S)
        assert "DRAIN" not in operator.slurm.nodes.by_name["gpu-0"].states

    run(main)
