"""Which nodes Slurm is to forget, because their Kubernetes nodes are gone (`pruneSlurmNodeRecords`).

A worker that ends leaves its node in Slurm, which misses it from then on. One whose number or Kubernetes node comes back takes
that up again; one whose Kubernetes node is gone for good stays in `sinfo` for ever.
"""

from collections.abc import Callable, Iterable
from typing import Final

from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

_DYNAMIC: Final = "DYNAMIC_NORM"
"""Of a node whose slurmd has made it: no slurm.conf has it."""
_SILENT: Final = "NOT_RESPONDING"


def forgotten(
    listed: Iterable[SlurmNodeFacts], *, feature: str, is_needed: Callable[[str], bool]
) -> tuple[SlurmNode, ...]:
    """Return those to be deleted, in order.

    A slurmd outside Kubernetes may have the same feature: as long as it answers, or has jobs, its node stays.

    Args:
        listed: all nodes of that Slurm.
        feature: which all workers of the NodeSet have.
        is_needed: says whether there is a pod of that name, or a Kubernetes node whose worker would have it.
    """
    return tuple(
        sorted(
            node.name
            for node in listed
            if feature in node.features
            and {_DYNAMIC, _SILENT} <= node.states
            and not node.is_external
            and not node.is_busy
            and not is_needed(node.name)
        )
    )
