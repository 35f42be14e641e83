"""How a node that shall take no jobs yet comes into Slurm.

An external node cannot be created drained, and between its creation and its drain slurmctld gives it to whoever waits. So
it is created *parked*: with our mark, but with no feature that a NodeSet is made of, hence in no partition of that kind.
There it is drained and given its features. Partitions do not follow that (measured with 26.05): they are made anew when a
node is created or deleted, whichever that is. So a spare one is. When the node is in its partitions, drained, it loses the
feature that says that it is parked; a process that dies on the way leaves that feature, and another one does it all again.
"""

from collections.abc import Iterator
from dataclasses import replace

from bridge.domain import names
from bridge.domain.ids import ClusterId, SlurmNode
from bridge.domain.model import nodes
from bridge.domain.model.nodes import SlurmNodeSpec
from bridge.domain.nodes.actions import NodeAction, RenewPartitions, SetFeatures


def parked(wanted: SlurmNodeSpec, cluster: ClusterId) -> SlurmNodeSpec:
    """How to create it."""
    return replace(wanted, features=(nodes.cluster_feature(cluster), names.PARKED_FEATURE))


def leave(wanted: SlurmNodeSpec, cluster: ClusterId) -> Iterator[NodeAction]:
    """How it gets into its partitions, once it is drained."""
    features = (*wanted.features, names.PARKED_FEATURE)
    yield SetFeatures(slurm_node=wanted.name, features=features)
    yield RenewPartitions(spare=_spare(wanted, cluster))
    yield SetFeatures(slurm_node=wanted.name, features=wanted.features)


def _spare(wanted: SlurmNodeSpec, cluster: ClusterId) -> SlurmNodeSpec:
    """In no partition; with our mark, so that one that was left behind goes as every node that nobody wants."""
    return SlurmNodeSpec(
        name=SlurmNode(f"{names.SPARE_NODE}-{cluster}"),
        address=wanted.address,
        cpus=1,
        memory_mib=1,
        features=(nodes.cluster_feature(cluster),),
    )
