"""Which placeholders name a Slurm node: such jobs cannot be updated any more once it is deleted."""

from bridge.domain.ids import SlurmNode
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import NotFound


async def naming(
    slurm: SlurmClient, placeholders: Placeholders, slurm_node: SlurmNode, since: float
) -> tuple[SlurmJob, ...] | None:
    """Find the live ones; those that the last reading has are read again, as a list of nodes may be written anew.

    since: seconds of the monotonic clock: who submits has known from then on that the node leaves. None: Slurm has not been
    read since, or not every job of it.

    Raises:
        SlurmError: it is not known.
    """
    snapshot = placeholders.whole_snapshot()
    if snapshot is None or snapshot.began_monotonic <= since:
        return None
    found: list[SlurmJob] = []
    for job in snapshot.jobs.values():
        if job.phase is JobPhase.ENDED or not _names(job, slurm_node):
            continue
        try:
            fresh = await jobs.job(slurm, job.id)
        except NotFound:
            continue
        if not isinstance(fresh, SlurmJob) or fresh.identity.uid != job.identity.uid:
            continue  # the id is another job's by now
        if fresh.phase is not JobPhase.ENDED and _names(fresh, slurm_node):
            found.append(fresh)
    return tuple(found)


def _names(job: SlurmJob, slurm_node: SlurmNode) -> bool:
    return slurm_node in job.required_nodes or slurm_node in job.excluded_nodes
