"""NodeSets of namespaces that this operator does not serve."""

from functools import partial

from slurmoperator.rendering.site import NamespaceScope
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, names_of, node_set
from tests.virtual_time import VirtualClock, run

ELSEWHERE = NamespaceScope(frozenset({"another"}))


def test_a_nodeset_elsewhere_is_told_and_its_workers_are_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.served = ELSEWHERE
        scale = partial(operator.api.change, "NodeSet", "gpu", spec={"replicas": 4})
        await operator.lead(for_s=2 * SETTLED_S, then={1.0: scale})

        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        told = operator.api.condition("gpu", "Accepted")
        assert ("False", "NotServed") == (told["status"], told["reason"])
        assert "does not serve namespace slurm, only another" in told["message"]

    run(main)


def test_one_without_workers_can_be_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=0))
        await operator.lead(for_s=SETTLED_S)
        operator.served = ELSEWHERE
        leaving = {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["slurm-bridge.dev/workers"],
        }
        operator.api.change("NodeSet", "gpu", metadata=leaving)
        await operator.lead(for_s=SETTLED_S)
        assert not operator.api.of("NodeSet")

    run(main)
