"""Both worlds' nodes side by side."""

from dataclasses import replace

import pytest

from bridge.domain.diagnosis import overview
from bridge.domain.model.demand import Demand
from bridge.domain.model.pods import BoundPod
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid, SlurmNode

KUBE = KubeNodeFacts(
    name=KubeNode("k1"),
    uid="u1",
    labels={names.EXTERNAL_NODE_LABEL: "true"},
    allocatable=Allocatable(milli_cpu=8000, memory_bytes=1 << 34),
)
SLURM = SlurmNodeFacts(
    name=SlurmNode("k1"), states=frozenset({"IDLE", "EXTERNAL"}), cpus=8, memory_mib=16384
)


def test_pairs_nodes_by_slurms_name() -> None:
    named = replace(KUBE, labels={**KUBE.labels, names.SLURM_NODE_NAME_LABEL: "s1"})

    (row,) = overview.rows([named], [replace(SLURM, name=SlurmNode("s1"))])

    assert ("k1", "s1", "Ready", "IDLE+EXTERNAL", "") == (
        row.kube_node,
        row.slurm_node,
        row.kubernetes,
        row.slurm,
        row.mismatch,
    )


@pytest.mark.parametrize(
    ("kube", "slurm", "mismatch"),
    [
        (replace(KUBE, is_ready=False), SLURM, "not ready, but Slurm offers it"),
        (replace(KUBE, is_unschedulable=True), SLURM, "cordoned, but Slurm offers it"),
        (
            replace(KUBE, is_unschedulable=True),
            replace(SLURM, states=frozenset({"IDLE", "DRAIN", "EXTERNAL"})),
            "",
        ),
        (replace(KUBE, labels={}), SLURM, "no longer labelled, but still in Slurm"),
        (KUBE, replace(SLURM, cpus=9), "Slurm offers more CPUs than Kubernetes has"),
        (KUBE, replace(SLURM, memory_mib=16385), "Slurm offers more memory than Kubernetes has"),
        (
            KUBE,
            replace(SLURM, states=frozenset({"IDLE", "EXTERNAL", "NOT_RESPONDING"})),
            "Slurm tried to reach a slurmd there",
        ),
        (KUBE, None, "labelled, but Slurm has no such node: kubectl describe node k1"),
        (None, SLURM, ""),
        (
            None,
            replace(SLURM, features=(f"{names.CLUSTER_FEATURE}=here",)),
            "registered by a slurm-bridge, but not a node of this cluster",
        ),
    ],
)
def test_says_what_does_not_fit_together(
    kube: KubeNodeFacts | None, slurm: SlurmNodeFacts | None, mismatch: str
) -> None:
    (row,) = overview.rows([kube] if kube else [], [slurm] if slurm else [])

    assert mismatch == row.mismatch


def test_names_the_owners_of_pods_that_slurm_did_not_place() -> None:
    squatter = BoundPod(
        uid=PodUid("u"), namespace="plain", name="squatter", kube_node=KubeNode("k1")
    )
    elsewhere = replace(squatter, kube_node=KubeNode("k2"))

    (row,) = overview.rows([KUBE], [SLURM], [squatter, elsewhere])

    assert "plain/Pod squatter" == row.others


def test_leaves_out_machines_that_are_kubernetes_own() -> None:
    assert [] == overview.rows([replace(KUBE, labels={})], [])


def test_finds_no_fault_where_slurm_was_not_asked() -> None:
    (row,) = overview.rows([KUBE], None)

    assert ("", "") == (row.slurm, row.mismatch)


def test_shows_how_exactly_pods_get_what_slurm_gave_them() -> None:
    gpus = replace(KUBE.allocatable, extended={"nvidia.com/gpu": 4})
    hybrid = {names.HYBRID_NODE_LABEL: "true", names.CPU_MANAGER_LABEL: "static"}
    twin = replace(SLURM, gres="gpu:4")

    def shown(node: KubeNodeFacts, slurm: SlurmNodeFacts | None) -> tuple[str, str]:
        known = None if slurm is None else [slurm]
        (row,) = overview.rows([node], known, gpu_resources={"nvidia.com/gpu": "gpu"})
        return row.devices, row.cores

    assert ("", "counts only") == shown(KUBE, SLURM)
    assert ("counts only", "counts only") == shown(replace(KUBE, allocatable=gpus), twin)
    assert ("refused", "refused") == shown(replace(KUBE, allocatable=gpus, labels=hybrid), twin)
    assert ("", "refused") == shown(replace(KUBE, allocatable=gpus, labels=hybrid), None)


def test_cores_are_exact_where_a_node_agent_is_alive() -> None:
    node = replace(KUBE, labels={**KUBE.labels, names.CPU_MANAGER_LABEL: "none"})

    (alive,) = overview.rows([node], [SLURM], agents={node.name})
    (away,) = overview.rows([node], [SLURM])

    assert ("exact", "counts only") == (alive.cores, away.cores)
    assert "node agent" in alive.exactness


def test_names_devices_that_pods_of_others_hold_on_a_hybrid_node() -> None:
    node = replace(KUBE, labels={names.HYBRID_NODE_LABEL: "true"})
    stranger = BoundPod(
        uid=PodUid("p"),
        namespace="kube-system",
        name="p",
        kube_node=node.name,
        demand=Demand(extended={"nvidia.com/gpu": 2}),
    )

    def shown(pod: BoundPod) -> str:
        slurm = replace(SLURM, gres="gpu:4")
        (row,) = overview.rows([node], [slurm], [pod], gpu_resources={"nvidia.com/gpu": "gpu"})
        return row.exactness

    assert shown(stranger).startswith("pods of others hold 2 gpu")
    assert "pods of others" not in shown(replace(stranger, is_terminal=True))
