"""Nodes to delete from Slurm because their Kubernetes nodes are gone (`pruneSlurmNodeRecords`).

A worker that ends leaves its node in Slurm, which then misses it. A worker whose ordinal or Kubernetes node comes back takes the
record over; that of a Kubernetes node which is gone for good would stay in `sinfo` for ever.
"""

from collections.abc import Container, Iterable
from typing import Final

from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

_DYNAMIC: Final = "DYNAMIC_NORM"
"""State of a node that its slurmd created: no slurm.conf lists it."""
_SILENT: Final = "NOT_RESPONDING"


def nodes_to_delete(
    nodes: Iterable[SlurmNodeFacts], *, feature: str, needed: Container[str]
) -> tuple[SlurmNode, ...]:
    """Return the names of the nodes with the NodeSet's feature to delete, in order.

    A slurmd outside Kubernetes may have the same feature: its node stays while it answers or has jobs. A name is needed if a
    pod has it, or the worker of a Kubernetes node would.
    """
    return tuple(
        sorted(
            node.name
            for node in nodes
            if feature in node.features
            and {_DYNAMIC, _SILENT} <= node.states
            and not node.is_external
            and not node.is_busy
            and node.name not in needed
        )
    )
