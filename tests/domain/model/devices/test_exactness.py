"""Where a pod gets the very devices and cores that Slurm gave it, and where it is not placed because it might not."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bridge.domain.model import demand
from bridge.domain.model.claims.profiles import COUNTED
from bridge.domain.model.demand import Demand, Resources
from bridge.domain.model.devices import exactness
from bridge.domain.model.devices.exactness import Exactness
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.request import candidates
from bridge.domain.request.candidates import Candidates, Pool
from bridge.domain.request.fit import KubeLimits
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.make import placing

GPUS = {
    "nvidia.com/gpu": "gpu",
    "nvidia.com/mig-1g.10gb": "gpu:1g.10gb",
    "example.com/nic": "nic",
}
HYBRID = {names.HYBRID_NODE_LABEL: "true"}
STATIC = {**HYBRID, names.CPU_MANAGER_LABEL: "static"}


def node(labels: Mapping[str, str] | None = None, **extended: int) -> KubeNodeFacts:
    """A node with `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb` (mig) and `example.com/nic`."""
    full = {"gpu": "nvidia.com/gpu", "mig": "nvidia.com/mig-1g.10gb", "nic": "example.com/nic"}
    found = placing.kube_node(labels=labels)
    has = {full[name]: count for name, count in extended.items()}
    return replace(found, allocatable=replace(found.allocatable, extended=has))


@pytest.mark.parametrize(
    ("kube_node", "slurm_gres", "expected"),
    [
        (node(), "", None),
        (replace(node(gpu=4), labels={}), "gpu:4", None),
        (node(gpu=4), "gpu:4", Exactness.COUNTS_ONLY),
        (node(gpu=1), "gpu:1", Exactness.EXACT),
        (node(gpu=1, nic=2), "gpu:1,nic:2", Exactness.COUNTS_ONLY),
        (node(HYBRID, gpu=4), "gpu:a100:4(S:0-1)", Exactness.REFUSED),
        (node(HYBRID, gpu=4), None, None),
        (node(HYBRID, gpu=4), "", Exactness.EXACT),
        (node(HYBRID, gpu=4), "nic:2", Exactness.EXACT),
        (node(HYBRID, gpu=1), "gpu:1", Exactness.EXACT),
        (node(HYBRID, gpu=1), "gpu:2", Exactness.REFUSED),
        (node(HYBRID, mig=7), "gpu:1", Exactness.REFUSED),
        (node(HYBRID, nic=1, gpu=2), "gpu:0,nic:1", Exactness.EXACT),
    ],
)
def test_the_devices_of_a_node(
    kube_node: KubeNodeFacts, slurm_gres: str | None, expected: Exactness | None
) -> None:
    assert expected == exactness.devices(kube_node, slurm_gres, GPUS).exactness


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, Exactness.COUNTS_ONLY),
        ({names.CPU_MANAGER_LABEL: "static"}, Exactness.COUNTS_ONLY),
        (HYBRID, Exactness.COUNTS_ONLY),
        (STATIC, Exactness.REFUSED),
    ],
)
def test_the_cores_of_a_node(labels: dict[str, str], expected: Exactness) -> None:
    assert expected == exactness.cores(node(labels)).exactness


def test_a_hybrid_node_whose_cpu_manager_is_unknown_says_which_label_is_missing() -> None:
    assert names.CPU_MANAGER_LABEL in exactness.cores(node(HYBRID)).reason
    known = {**HYBRID, names.CPU_MANAGER_LABEL: "none"}
    assert names.CPU_MANAGER_LABEL not in exactness.cores(node(known)).reason


@pytest.mark.parametrize(
    ("kube_node", "slurm_gres", "asked", "is_placed"),
    [
        (node(gpu=4), "gpu:4", 2, True),
        (node(HYBRID, gpu=4), "gpu:4", 0, True),
        (node(HYBRID, gpu=4), "gpu:4", 2, False),
        (node(HYBRID, gpu=4), "gpu:4", 4, True),
        (node(HYBRID, gpu=4), "gpu:8", 4, False),
        (node(HYBRID, gpu=8), "gpu:4", 4, False),
        (node(HYBRID, gpu=4), "", 2, True),
        (node(HYBRID, gpu=4), None, 2, False),
        (node(HYBRID, gpu=4), None, 4, True),
        (node(HYBRID, gpu=1), "gpu:1", 1, True),
        (node(HYBRID, gpu=2, mig=2), "gpu:4", 2, False),
    ],
)
def test_a_pod_gets_devices_of_a_hybrid_node_only_if_no_other_choice_is_possible(
    kube_node: KubeNodeFacts, slurm_gres: str | None, asked: int, *, is_placed: bool
) -> None:
    wanted = placing.demands(**({"nvidia.com/gpu": str(asked)} if asked else {}))

    why = exactness.why_refused(wanted, kube_node, slurm_gres, GPUS)

    assert is_placed is (why == ""), why


def pod(cpu: str, *, cpu_limit: str = "", memory_limit: str = "1Gi") -> Demand:
    limits = {"cpu": cpu_limit or cpu, "memory": memory_limit}
    return demand.of([Resources({"cpu": cpu, "memory": "1Gi"}, limits)])


@pytest.mark.parametrize(
    ("wanted", "labels", "is_placed"),
    [
        (pod("2"), STATIC, False),
        (pod("2"), HYBRID, True),
        (pod("2"), {names.CPU_MANAGER_LABEL: "static"}, True),
        (pod("2", cpu_limit="3"), STATIC, True),
        (pod("2", memory_limit="2Gi"), STATIC, True),
        (pod("500m"), STATIC, True),
        (placing.demands("2"), STATIC, True),
    ],
)
def test_a_guaranteed_pod_keeps_off_a_hybrid_node_whose_kubelet_pins_cores(
    wanted: Demand, labels: dict[str, str], *, is_placed: bool
) -> None:
    why = exactness.why_refused(wanted, node(labels), "", GPUS)

    assert is_placed is (why == ""), why


@pytest.mark.parametrize(
    ("labels", "slurm_gres", "expected"),
    [
        (HYBRID, "gpu:a100:4", "pods of others hold 1 gpu, and slurmd may give a job the same"),
        (HYBRID, "nic:4", ""),
        (HYBRID, None, ""),
        ({}, "gpu:4", ""),
    ],
)
def test_devices_of_others_that_slurmd_may_give_away_are_named(
    labels: dict[str, str], slurm_gres: str | None, expected: str
) -> None:
    others = placing.demands(**{"nvidia.com/gpu": "1"})

    assert expected == exactness.unguarded(others, node(labels, gpu=4), slurm_gres, GPUS)


UNTAINTED = f"{placing.MARK}&{placing.NO_TAINTS}"


def test_a_pod_with_a_device_keeps_off_hybrid_nodes_where_slurmd_hands_out_devices_too() -> None:
    hybrid = {names.HYBRID_NODE_LABEL: "true"}
    around = candidates.pool(
        [placing.kube_node("k1", gpus=4, labels=hybrid), placing.kube_node("k2", gpus=4)],
        [placing.slurm_node("k1", gres="gpu:4"), placing.slurm_node("k2", gres="gpu:4")],
        placing.CLUSTER,
    )
    alone = replace(around, nodes={k: v for k, v in around.nodes.items() if k == "k1"})
    counted = KubeLimits(counted={"nvidia.com/gpu": "gpu"}, hybrid=HybridRule.ACCEPT_OVERLAP)

    def found(gpus: int, among: Pool) -> Candidates:
        wanting = placing.pod(demand=placing.demands(**{"nvidia.com/gpu": str(gpus)}))
        return candidates.choose(wanting, among, hidden=counted)

    assert Candidates(required_nodes=(SlurmNode("k2"),)) == found(1, around)
    assert Candidates(constraints=UNTAINTED) == found(4, around)
    assert "slurmd hands out devices of gpu there too" in found(1, alone).problem
    assert Candidates(constraints=UNTAINTED) == candidates.choose(
        placing.pod(), around, hidden=counted
    )


CLAIMED = COUNTED + "gpu:example"
ORDERED = {**HYBRID, names.DEVICE_ORDER_LABEL: "by-name"}


@pytest.mark.parametrize(
    ("labels", "slurm_gres", "expected"),
    [
        ({}, "gpu:example:4", ""),
        (HYBRID, "gpu:example:4", f"label the node {names.DEVICE_ORDER_LABEL}=by-name"),
        ({**ORDERED, names.DEVICE_ORDER_LABEL: "true"}, "gpu:example:4", "=by-name"),
        (HYBRID, "gpu:example:1", "=by-name"),
        (HYBRID, None, "not known now which devices"),
        (ORDERED, None, "not known now which devices"),
        (HYBRID, "nic:4", ""),
        (ORDERED, "gpu:example:4(S:0),nic:1", ""),
        (ORDERED, "gpu:example:2,gpu:other:2", "of several types there"),
        (ORDERED, "gpu:other:2", ""),
    ],
)
def test_a_claim_gets_devices_of_a_hybrid_node_only_where_slurmd_numbers_them_alike(
    labels: dict[str, str], slurm_gres: str | None, expected: str
) -> None:
    wanted = placing.demands(**{CLAIMED: "1"})

    why = exactness.why_refused(wanted, node(labels), slurm_gres, {CLAIMED: "gpu:example"})

    assert bool(expected) is bool(why)
    assert expected in why


@pytest.mark.parametrize(
    ("labels", "slurm_gres", "expected"),
    [
        (ORDERED, "gpu:example:4", Exactness.EXACT),
        (ORDERED, "gpu:example:2,gpu:other:2", Exactness.REFUSED),
        ({**ORDERED, names.DEVICE_ORDER_LABEL: "yes"}, "gpu:example:4", Exactness.REFUSED),
        (ORDERED, "nic:4", None),
        (ORDERED, None, None),
        (HYBRID, "gpu:example:4", None),
        ({names.DEVICE_ORDER_LABEL: "by-name"}, "gpu:example:4", None),
    ],
)
def test_a_hybrid_node_whose_order_is_known_gives_claims_the_very_devices(
    labels: dict[str, str], slurm_gres: str | None, expected: Exactness | None
) -> None:
    ruling = exactness.devices(node(labels), slurm_gres, {**GPUS, CLAIMED: "gpu:example"})

    assert expected == ruling.exactness


def test_devices_of_a_plugin_beside_claimed_ones_of_a_hybrid_node_are_refused_all_the_same() -> (
    None
):
    wanted = placing.demands(**{CLAIMED: "1", "nvidia.com/gpu": "1"})
    resources = {**GPUS, CLAIMED: "gpu:example"}

    why = exactness.why_refused(wanted, node(ORDERED, gpu=4), "gpu:example:4", resources)

    assert "only a pod that requests all of them" in why
