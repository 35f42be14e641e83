"""Show the nodes of both systems side by side, and where they disagree."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from bridge.domain.model import demand, others
from bridge.domain.model.devices import exactness
from bridge.domain.model.pods import BoundPod
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import names, quantities
from slurmruntime.values.ids import KubeNode, SlurmNode

_BASE = frozenset({"IDLE", "MIXED", "ALLOCATED", "DOWN", "UNKNOWN", "FUTURE", "ERROR"})
_CLOSED = frozenset({"DRAIN", "DRAINING", "DRAINED", "DOWN", "FAIL", "FAILING", "NOT_RESPONDING"})
"""States in which Slurm starts nothing on a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One machine."""

    kube_node: KubeNode | None
    slurm_node: SlurmNode | None
    kubernetes: str
    """`Ready`, `NotReady`, `Ready,cordoned` …; "" if Kubernetes has no such node."""
    slurm: str
    """`IDLE+EXTERNAL` …; "" if Slurm has none or was not asked."""
    cpus: int
    """Allocatable in Kubernetes, as Slurm counts: whole CPUs, or the parts that one of its CPUs is."""
    slurm_cpus: int
    used_cpus: int
    """By Slurm's jobs."""
    memory_mib: int
    slurm_memory_mib: int
    gres: str
    reason: str
    """Slurm's reason for a drain or worse."""
    others: str = ""
    """Owners of the pods that Slurm did not place there; "" if there are none or they were not read."""
    devices: str = ""
    """How exactly a pod gets the devices that Slurm gave it (`Exactness`); "" if there are none."""
    cores: str = ""
    """How exactly a pod gets the cores that Slurm gave it."""
    exactness: str = ""
    """The reasons, for devices and cores."""
    mismatch: str
    """What does not match; "" if everything does."""


def rows(
    kube_nodes: Iterable[KubeNodeFacts],
    slurm_nodes: Sequence[SlurmNodeFacts] | None,
    bound: Iterable[BoundPod] = (),
    *,
    gpu_resources: Mapping[str, str] = MappingProxyType({}),
    milli_per_cpu: int = quantities.MILLI,
    agents: Collection[KubeNode] = (),
) -> Sequence[NodeRow]:
    """Pair the nodes by their Slurm name; list only those that Slurm has or should have.

    Args:
        slurm_nodes: all nodes of Slurm; None if it was not asked.
        bound: all pods with a node that are not Slurm's.
        gpu_resources: Kubernetes resource name → GRES name.
        milli_per_cpu: the thousandths of a Kubernetes CPU that one CPU of Slurm stands for.
        agents: the nodes whose node agent is alive.
    """
    pods_by_node: defaultdict[KubeNode | None, list[BoundPod]] = defaultdict(list)
    for pod in bound:
        pods_by_node[pod.kube_node].append(pod)
    by_name = {node.name: node for node in slurm_nodes or ()}
    node_rows = []
    for node in kube_nodes:
        name = nodes.slurm_name(node)
        twin = by_name.pop(name, None)
        if twin is not None or nodes.is_wanted(node):
            row = _row(node, name, twin, milli_per_cpu, is_slurm_known=slurm_nodes is not None)
            gres = twin.gres if twin else None
            devices = exactness.devices(node, gres, gpu_resources)
            foreign_demand = demand.total(
                p.demand for p in pods_by_node[node.name] if not p.is_terminal
            )
            unguarded = exactness.unguarded(foreign_demand, node, gres, gpu_resources)
            cores = exactness.cores(node, agents)
            row = replace(
                row,
                others=others.summary(pods_by_node[node.name]),
                devices=devices.exactness or "",
                cores=cores.exactness or "",
                exactness="; ".join(filter(None, (unguarded, devices.reason, cores.reason))),
            )
            node_rows.append(row)
    node_rows.extend(
        _row(None, twin.name, twin, milli_per_cpu, is_slurm_known=True) for twin in by_name.values()
    )
    return sorted(node_rows, key=lambda row: (row.kube_node or "~", row.slurm_node or ""))


def _row(
    node: KubeNodeFacts | None,
    name: SlurmNode,
    twin: SlurmNodeFacts | None,
    milli_per_cpu: int,
    *,
    is_slurm_known: bool,
) -> NodeRow:
    return NodeRow(
        kube_node=node.name if node else None,
        slurm_node=twin.name if twin else name,
        kubernetes=_kubernetes(node) if node else "",
        slurm="+".join(sorted(twin.states, key=lambda state: (state not in _BASE, state)))
        if twin
        else "",
        cpus=node.allocatable.milli_cpu // milli_per_cpu if node else 0,
        slurm_cpus=twin.cpus if twin else 0,
        used_cpus=twin.alloc_cpus if twin else 0,
        memory_mib=node.allocatable.memory_bytes >> 20 if node else 0,
        slurm_memory_mib=twin.memory_mib if twin else 0,
        gres=twin.gres if twin else "",
        reason=twin.reason if twin else "",
        mismatch="; ".join(_mismatches(node, twin, milli_per_cpu)) if is_slurm_known else "",
    )


def _kubernetes(node: KubeNodeFacts) -> str:
    ready = "Ready" if node.is_ready else "NotReady"
    return f"{ready},cordoned" if node.is_unschedulable else ready


def _mismatches(
    node: KubeNodeFacts | None, twin: SlurmNodeFacts | None, milli_per_cpu: int
) -> list[str]:
    if node is None:
        ours = twin is not None and any(
            feature.startswith(names.CLUSTER_FEATURE) for feature in twin.features
        )
        return ["registered by a slurm-bridge, but not a node of this cluster"] if ours else []
    if twin is None:
        return [f"labelled, but Slurm has no such node: kubectl describe node {node.name}"]
    is_open = not twin.states & _CLOSED
    is_external = "EXTERNAL" in twin.states
    checks = (
        (not node.is_ready and is_open, "not ready, but Slurm offers it"),
        (node.is_unschedulable and is_open, "cordoned, but Slurm offers it"),
        (is_external and not nodes.is_wanted(node), "no longer labelled, but still in Slurm"),
        (
            is_external and twin.cpus * milli_per_cpu > node.allocatable.milli_cpu,
            "Slurm offers more CPUs than Kubernetes has",
        ),
        (
            is_external and twin.memory_mib > node.allocatable.memory_bytes >> 20,
            "Slurm offers more memory than Kubernetes has",
        ),
        ("NOT_RESPONDING" in twin.states, "Slurm tried to reach a slurmd there"),
    )
    return [text for is_so, text in checks if is_so]
