"""Labels and annotations of workers; those shared with SchedMD's slurm-operator keep its names."""

from typing import Final

from slurmoperator.objects import labels
from slurmoperator.objects.labels import WORKER_APP

DIGEST_LABEL: Final = "controller-revision-hash"
"""On a worker's pod: the hash of the template it was made from."""
POD_NAME_LABEL: Final = "nodeset.slinky.slurm.net/pod-name"
POD_INDEX_LABEL: Final = "nodeset.slinky.slurm.net/pod-index"
POD_HOST_LABEL: Final = "nodeset.slinky.slurm.net/pod-hostname"
MODE_LABEL: Final = "nodeset.slinky.slurm.net/scaling-mode"
"""On a worker's pod, for others: its name, its ordinal as written in names, its name in Slurm, and its NodeSet's scalingMode."""
DELETION_COST_ANNOTATION: Final = "nodeset.slinky.slurm.net/pod-deletion-cost"
POD_CORDON_ANNOTATION: Final = "nodeset.slinky.slurm.net/pod-cordon"
"""On a worker's pod, with the value "true": it should take no jobs."""
CORDON_REASON_ANNOTATION: Final = "nodeset.slinky.slurm.net/node-cordon-reason"
"""On a Kubernetes node: why it is cordoned."""
KUBE_NODE_ANNOTATION: Final = "slurm-bridge.dev/kube-node"
"""On a worker's pod, with one worker on each node: the Kubernetes node it was made for."""
WORKERS_FINALIZER: Final = "slurm-bridge.dev/workers"
"""On a NodeSet: keeps it until its workers are drained and gone."""
WORKER_SELECTOR: Final = "app.kubernetes.io/name=slurmd"

RESERVED: Final = "ReservationCreated"
"""The condition of a NodeSet that has or may have a reservation: set before that is made."""


def reservation(node_set: str) -> str:
    """Return the name of the reservation for a NodeSet's scheduled updates."""
    return f"SlurmOperatorMaint-{node_set}"


def selector(node_set: str) -> str:
    """Return the label selector of a NodeSet's pods, as its scale sub-resource shows it."""
    return labels.selector(WORKER_APP, node_set)
