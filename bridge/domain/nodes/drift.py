"""Compare a node in Slurm with its desired description, and find what Slurm can change in place."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from bridge.domain.model.devices import gres
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes.actions import (
    Drain,
    NodeAction,
    SetAddress,
    SetFeatures,
    SetTopology,
    SetWeight,
)
from bridge.domain.nodes.state import REASON_PREFIX
from slurmruntime.model.nodes import SlurmNodeFacts, SlurmNodeSpec


def changes(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> Iterator[NodeAction]:
    """Yield the changes that Slurm can make without re-creating the node."""
    name = slurm_node.name
    if set(slurm_node.features) != set(wanted.features):
        yield SetFeatures(slurm_node=name, features=wanted.features)
    if wanted.address and slurm_node.address != wanted.address:
        yield SetAddress(slurm_node=name, address=wanted.address)
    parts = node_spec.topology_parts
    if parts(slurm_node.topology) != parts(wanted.topology):
        yield SetTopology(slurm_node=name, topology=wanted.topology)
    if slurm_node.weight != wanted.weight:
        yield SetWeight(slurm_node=name, weight=wanted.weight)


def must_shrink(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Explain why Slurm must stop offering the node as it is; "" if it need not.

    Fewer CPUs or less memory left in Kubernetes are no reason while jobs run: fillers hold the
    difference. Otherwise anyone who may create pods could drain every node.
    """
    if not slurm_node.is_busy and slurm_node.cpus > wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if not slurm_node.is_busy and slurm_node.memory_mib > wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    if slurm_node.threads_per_core != wanted.threads_per_core:
        return f"Slurm has {slurm_node.threads_per_core} threads per core, not {wanted.threads_per_core}"
    if gres.plain(slurm_node.gres) != wanted.gres:
        return f"Slurm has GRES {slurm_node.gres!r}, Kubernetes has {wanted.gres!r}"
    in_partitions = node_spec.partition_features
    if in_partitions(slurm_node.features) != in_partitions(wanted.features):
        # Partitions defined by a NodeSet do not follow a live change of features.
        return "its partitions changed"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWait:
    """A node waits for its devices, drained."""

    why: str
    drain: tuple[Drain, ...]
    """What is left to do; nothing if it is drained for exactly that."""
    left: timedelta
    """How much longer it waits."""


def missing_devices(
    slurm_node: SlurmNodeFacts,
    wanted: SlurmNodeSpec,
    reason_age: timedelta | None,
    patience: timedelta,
) -> DeviceWait | None:
    """Return the wait for devices that Slurm has and Kubernetes lacks; None if none are missing.

    Whenever a kubelet or its device plugin restarts, their count is 0 for some seconds. The time of
    the drain shows how long the wait has been: no state is needed, and a new leader knows it, too.

    Args:
        reason_age: how long ago the reason of its drain was set; None if Slurm does not report it.
        patience: how long to wait before the node is re-created without them.
    """
    has = gres.counted(wanted.gres)
    had = gres.counted(slurm_node.gres)
    if all(has.get(name, 0) >= count for name, count in had.items()):
        return None
    present = wanted.gres or "none"
    why = f"devices are missing: Slurm has {slurm_node.gres}, Kubernetes has {present}"
    drain = Drain(slurm_node=slurm_node.name, reason=f"{REASON_PREFIX}{why}")
    if "DRAIN" not in slurm_node.states or slurm_node.reason != drain.reason:
        return DeviceWait(why=why, drain=(drain,), left=patience)
    left = patience - (reason_age or patience)
    return DeviceWait(why=f"{why}; waiting", drain=(), left=left) if left > timedelta() else None


def may_grow(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Explain why an idle node should be re-created; "" if it should not.

    This is not worth a drain: a DaemonSet's pod that is being replaced looks the same.
    """
    if "NOT_RESPONDING" in slurm_node.states:
        return "Slurm tried to reach a slurmd there"
    if slurm_node.cpus < wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if slurm_node.memory_mib < wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    return ""


def missing(wanted: SlurmNodeSpec) -> str:
    """Name what a node lacks to be registered in Slurm; "" if nothing."""
    if not wanted.address:
        return "the kubelet has reported no InternalIP"
    if not wanted.cpus or not wanted.memory_mib:
        return "nothing is left of it beside the DaemonSets' pods"
    return ""
