"""Pods and nodes for tests that are about what a pod needs and where it may go."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand, Resources
from bridge.domain.model.pods import Pod
from slurmruntime.model import nodes
from slurmruntime.model.affinity import NodeTerm, Requirement, Toleration
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts, SlurmNodeFacts, Taint
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode, PodUid, SlurmNode

CLUSTER = ClusterId("c-1")
MARK = nodes.cluster_feature(CLUSTER)
NO_TAINTS = f"{names.TAINTS_FEATURE}=none"
CREATED = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
GIB = 2**30

OUR_TOLERATION = Toleration(key=names.MANAGED_NODE_TAINT, operator="Exists")


def demands(cpu: str = "1", memory: str = "1Gi", **others: str) -> Demand:
    return demand.of([Resources({"cpu": cpu, "memory": memory, **others})])


def pod(**fields: Any) -> Pod:
    """A gated pod that requests 1 CPU and 1 GiB."""
    known: dict[str, Any] = {
        "uid": PodUid("u-1"),
        "namespace": "team-a",
        "name": "train",
        "created_at": CREATED,
        "gates": (names.GATE,),
        "finalizers": (names.FINALIZER,),
        "tolerations": (OUR_TOLERATION,),
        "demand": demands(),
    }
    return Pod(**known | fields)


def kube_node(
    name: str = "k1",
    *,
    labels: Mapping[str, str] | None = None,
    cpus: int = 8,
    gib: int = 32,
    gpus: int = 0,
    pods: int = 110,
    **fields: Any,
) -> KubeNodeFacts:
    """A ready node, labelled as an external one."""
    return KubeNodeFacts(
        name=KubeNode(name),
        uid=f"uid-of-{name}",
        labels={names.EXTERNAL_NODE_LABEL: "true", **(labels or {})},
        allocatable=Allocatable(
            milli_cpu=cpus * 1000,
            memory_bytes=gib * GIB,
            ephemeral_storage_bytes=100 * GIB,
            pods=pods,
            extended={"nvidia.com/gpu": gpus} if gpus else {},
        ),
        internal_ip="10.0.0.1",
        **fields,
    )


def slurm_node(name: str = "k1", *features: str, **fields: Any) -> SlurmNodeFacts:
    """An idle external node of this cluster, as large as `kube_node()`."""
    known: dict[str, Any] = {
        "states": frozenset({"IDLE", "EXTERNAL", "DYNAMIC_NORM"}),
        "cpus": 8,
        "memory_mib": 32 * 1024,
        "features": (names.BRIDGED_FEATURE, MARK, NO_TAINTS, *features),
        "address": "10.0.0.1",
    }
    return SlurmNodeFacts(name=SlurmNode(name), **known | fields)


def term(*requirements: tuple[str, str, str]) -> NodeTerm:
    """Each requirement as (key, operator, values with commas)."""
    return NodeTerm(match_labels=tuple(requirement(*each) for each in requirements))


def requirement(key: str, operator: str, values: str = "") -> Requirement:
    return Requirement(
        key=key, operator=operator, values=tuple(values.split(",")) if values else ()
    )


def taint(text: str) -> Taint:
    """`key=value:effect`, as kubectl writes it."""
    key_value, _, effect = text.rpartition(":")
    key, _, value = key_value.partition("=")
    return Taint(key=key, value=value, effect=effect)
