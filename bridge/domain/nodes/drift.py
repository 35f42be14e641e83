"""Compare a node in Slurm with its desired description, and find what Slurm can change in place."""

from collections.abc import Iterator

from bridge.domain.model.nodes import SlurmNodeFacts, SlurmNodeSpec
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes.actions import NodeAction, SetAddress, SetFeatures, SetTopology, SetWeight


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

    That Kubernetes has less CPUs or memory left is no reason while jobs run: fillers hold the
    difference. Otherwise whoever may create pods could drain every node.
    """
    if not slurm_node.is_busy and slurm_node.cpus > wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if not slurm_node.is_busy and slurm_node.memory_mib > wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    if slurm_node.threads_per_core != wanted.threads_per_core:
        return f"Slurm has {slurm_node.threads_per_core} threads per core, not {wanted.threads_per_core}"
    if node_spec.plain_gres(slurm_node.gres) != wanted.gres:
        return f"Slurm has GRES {slurm_node.gres!r}, Kubernetes has {wanted.gres!r}"
    in_partitions = node_spec.partition_features
    if in_partitions(slurm_node.features) != in_partitions(wanted.features):
        # Partitions defined by a NodeSet do not follow a live change of features.
        return "its partitions changed"
    return ""


def devices_missing(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Explain which devices Slurm has and Kubernetes has not; "" if none.

    Whenever a kubelet or its device plugin restarts, the count is 0 for some seconds.
    """
    had = node_spec.counted(slurm_node.gres)
    has = node_spec.counted(wanted.gres)
    if any(has.get(name, 0) < count for name, count in had.items()):
        there = wanted.gres or "none"
        return f"devices are missing: Slurm has {slurm_node.gres}, Kubernetes has {there}"
    return ""


def may_grow(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Explain why an idle node should be re-created; "" if it should not.

    This is not worth a drain: a DaemonSet's pod that is being replaced looks the same.
    """
    if "NOT_RESPONDING" in slurm_node.states:
        return "Slurm tried to reach a slurmd, and nothing else clears NOT_RESPONDING"
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
