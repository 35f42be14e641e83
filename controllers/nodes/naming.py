"""Finds the placeholders that name a Slurm node; such jobs cannot be updated once the node is deleted."""

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes.named import MOST_AT_ONCE
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode


async def placeholders_naming(
    slurm: SlurmClient, placeholders: Placeholders, slurm_node: SlurmNode, since: float
) -> tuple[SlurmJob, ...] | None:
    """Find the live placeholders that name a node, waiting ones first, and no more than are rewritten at once.

    Those in the last reading are read again, because their node lists may have been rewritten.

    since: in seconds of the monotonic clock; jobs submitted later do not name the node. Return None if Slurm
    has not been read completely since then.

    Raises:
        SlurmError: a job could not be read.
    """
    snapshot = placeholders.whole_snapshot(since=since)
    if snapshot is None:
        return None
    listed = [job for job in snapshot.jobs.values() if _names(job, slurm_node)]
    listed.sort(key=lambda job: job.phase is not JobPhase.WAITING)
    confirmed: list[SlurmJob] = []
    for job in listed[:MOST_AT_ONCE]:
        fresh = await jobs.verified(slurm, job.id, job.identity.key)
        if fresh and _names(fresh, slurm_node):
            confirmed.append(fresh)
        else:
            placeholders.changed(job.id)
    return tuple(confirmed) if confirmed or len(listed) <= MOST_AT_ONCE else None


def _names(job: SlurmJob, slurm_node: SlurmNode) -> bool:
    is_named = slurm_node in job.required_nodes or slurm_node in job.excluded_nodes
    return is_named and job.phase is not JobPhase.ENDED
