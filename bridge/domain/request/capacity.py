"""Whether a node could ever hold a pod, by what Slurm does not count.

Slurm counts CPUs, memory and GRES. Whatever else a pod requests must at least be allocatable on the
node: otherwise Slurm would start its job there again and again. What other pods take of it changes,
and is for the fit check.
"""

from collections.abc import Container

from bridge.domain import quantities
from bridge.domain.model.nodes import KubeNodeFacts
from bridge.domain.model.pods import Pod


def lacking(pod: Pod, kube_node: KubeNodeFacts, counted: Container[str]) -> str:
    """Return what the node never has enough of, in words; "" if it may hold the pod.

    counted: extended resources that Slurm counts itself.
    """
    wanted, allocatable = pod.demand, kube_node.allocatable
    if wanted.ephemeral_storage_bytes > allocatable.ephemeral_storage_bytes:
        return f"{quantities.mebibytes(wanted.ephemeral_storage_bytes)}Mi of ephemeral-storage"
    for name, count in sorted(wanted.extended.items()):
        if name not in counted and count > allocatable.extended.get(name, 0):
            return f"{count} {name}"
    return "room for a pod" if wanted.pods > allocatable.pods else ""
