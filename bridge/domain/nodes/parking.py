"""Register a node in Slurm that must not take jobs yet.

An external node cannot be created drained, and slurmctld may start waiting jobs on it between its
creation and its drain. So it is created *parked*: with our mark, but without any feature that a
NodeSet selects, and therefore in no partition of that kind. There it is drained and given its
features. Partitions do not follow that change (measured with 26.05): slurmctld rebuilds them only
when some node is created or deleted, so a spare node is created and deleted. Once the node is
drained and in its partitions, the feature that marks it as parked is removed. If a process dies on
the way, that feature remains, and the next one repeats the whole sequence.
"""

from collections.abc import Iterator
from dataclasses import replace

from bridge.domain.nodes.actions import NodeAction, RenewPartitions, SetFeatures
from slurmruntime.model import nodes
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, SlurmNode


def parked_spec(wanted: SlurmNodeSpec, cluster: ClusterId) -> SlurmNodeSpec:
    """Return the description under which the node is created."""
    return replace(wanted, features=(nodes.cluster_feature(cluster), names.PARKED_FEATURE))


def leave(wanted: SlurmNodeSpec, cluster: ClusterId) -> Iterator[NodeAction]:
    """Yield the steps that put a drained node into its partitions."""
    features = (*wanted.features, names.PARKED_FEATURE)
    yield SetFeatures(slurm_node=wanted.name, features=features)
    yield RenewPartitions(
        spare=SlurmNodeSpec(
            # In no partition, and with our mark: one left behind is removed like any unwanted node.
            name=SlurmNode(f"{names.SPARE_NODE}-{cluster}"),
            address=wanted.address,
            cpus=1,
            memory_mib=1,
            features=(nodes.cluster_feature(cluster),),
        )
    )
    yield SetFeatures(slurm_node=wanted.name, features=wanted.features)
