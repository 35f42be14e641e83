"""`pinToNode`: a worker that is made anew returns to its Kubernetes node."""

from tests.make.apiserver import Manifest
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, names_of, node_set
from tests.virtual_time import VirtualClock, run


def machine(name: str) -> Manifest:
    meta = {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "Node", "metadata": meta, "spec": {}}


def held_to(pod: Manifest) -> list[str]:
    """The nodes that a pod's affinity names."""
    required = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = required.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        value
        for term in terms.get("nodeSelectorTerms", [])
        for field in term["matchFields"]
        for value in field["values"]
    ]


def test_a_worker_returns_to_its_node_while_kubernetes_has_it() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("machine-gpu-0", "machine-gpu-1"):
            operator.api.create(machine(name))
        operator.api.put(node_set(replicas=2, pinToNode=True))
        await operator.lead(for_s=SETTLED_S)
        pinned = {"0": "machine-gpu-0", "1": "machine-gpu-1"}
        assert pinned == operator.api.status("gpu")["ordinalToNode"]
        assert [[], []] == [held_to(pod) for pod in operator.api.pods.values()]

        for name in ("gpu-0", "gpu-1"):
            operator.api.remove("Pod", name)
        operator.api.remove("Node", "machine-gpu-1")
        await operator.lead(for_s=SETTLED_S)
        assert ["machine-gpu-0"] == held_to(operator.api.pods["gpu-0"])
        assert [] == held_to(operator.api.pods["gpu-1"])

        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=2 * SETTLED_S)
        (left,) = names_of(operator.api.pods)
        assert {left.removeprefix("gpu-")} == operator.api.status("gpu")["ordinalToNode"].keys()
        operator.api.change("NodeSet", "gpu", spec={"pinToNode": False})
        await operator.lead(for_s=SETTLED_S)
        assert not operator.api.status("gpu").get("ordinalToNode")

    run(main)


def test_a_field_that_is_not_acted_on_is_told() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, pruneSlurmNodeRecords="NodeNotFound"))
        await operator.lead(for_s=SETTLED_S)
        told = operator.api.condition("gpu", "Accepted")
        assert ("True", "PartlyServed") == (told["status"], told["reason"])
        assert (
            "spec.pruneSlurmNodeRecords: has no effect without scalingMode: DaemonSet"
            in told["message"]
        )
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)
