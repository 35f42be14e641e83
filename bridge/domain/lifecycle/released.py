"""Nodes that a running placeholder has given up: Slurm lets a job's user make it smaller.

`scontrol update NumNodes=` takes effect at once, and Slurm gives the nodes to others. What the job
was granted is recorded on each member of a gang, so a node that is missing now was given up. It is
not merely known by another name.
"""

import itertools

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode


def node_of(pod: Pod, job: SlurmJob) -> SlurmNode | None:
    """Return the pod's node if its gang's running placeholder has given it up, else None."""
    if job.phase is not JobPhase.RUNNING or pod.rank is None or not is_smaller(pod, job):
        return None
    recorded = pod.grant
    if recorded is None:
        return None
    parts = (recorded[1], *recorded[1].also)
    slots = (node for part in parts for node, count in part.tasks_on.items() for _ in range(count))
    node = next(itertools.islice(slots, pod.rank, None), None)
    return node if node not in job.nodes else None


def is_smaller(pod: Pod, job: SlurmJob) -> bool:
    """Check whether the job has fewer nodes than when it placed this member of a gang."""
    nodelist = pod.annotations.get(names.NODELIST_ANNOTATION, "")
    return bool(job.nodes) and nodelist.count(",") >= len(job.nodes)
