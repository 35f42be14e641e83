"""Find the placeholders that name a Slurm node.

Such jobs cannot be updated once the node is deleted.
"""

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes.named import MOST_AT_ONCE
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode


async def naming(
    slurm: SlurmClient, placeholders: Placeholders, slurm_node: SlurmNode, since: float
) -> tuple[SlurmJob, ...] | None:
    """Find the live placeholders that name a node, waiting ones first, and no more than are rewritten at once.

    Those in the last reading are read again, as their node lists may have been rewritten.

    since: in seconds of the monotonic clock; from then on, whoever submits has known that the node
    leaves. Return None if Slurm, or every job of it, has not been read since.

    Raises:
        SlurmError: it is not known.
    """
    snapshot = placeholders.whole_snapshot(since=since)
    if snapshot is None:
        return None
    read = [job for job in snapshot.jobs.values() if _names(job, slurm_node)]
    read.sort(key=lambda job: job.phase is not JobPhase.WAITING)
    found: list[SlurmJob] = []
    for job in read[:MOST_AT_ONCE]:
        fresh = await jobs.verified(slurm, job.id, job.identity.key)
        if fresh and _names(fresh, slurm_node):
            found.append(fresh)
        else:
            placeholders.changed(job.id)
    return tuple(found) if found or len(read) <= MOST_AT_ONCE else None


def _names(job: SlurmJob, slurm_node: SlurmNode) -> bool:
    is_named = slurm_node in job.required_nodes or slurm_node in job.excluded_nodes
    return is_named and job.phase is not JobPhase.ENDED
