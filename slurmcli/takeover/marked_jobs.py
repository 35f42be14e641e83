"""Jobs that SchedMD's bridge has marked: read one, write our identity into it, cancel it."""

from bridge.domain.model import identities
from bridge.domain.model.identities import Identity
from bridge.slurm import decode, jobs
from bridge.slurm.decode import EXTERNAL_JOB
from bridge.slurm.updating import update
from slurmcli.takeover.plan import MarkedJob
from slurmclient.errors import Malformed, TargetNotFound
from slurmclient.wire import reading
from slurmclient.wire.reading import Unreadable
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import hostlist
from slurmruntime.values.ids import JobId, Sluid, SlurmNode


async def read(client: SlurmClient, id_: JobId) -> MarkedJob | None:
    """Return the job; None if Slurm does not know it (any more).

    Raises:
        SlurmError: it could not be read.
    """
    operation = "job.get_marked"
    try:
        answer = await client.call(operation, "slurm_get_job", {"job_id": id_}, answer=wire.Jobs)
    except TargetNotFound:
        return None
    try:
        (job,) = (
            read.value
            for raw in answer.jobs or ()
            if not isinstance(read := reading.lenient(bytes(raw), wire.Job), Unreadable)
            and read.value.job_id == id_
        )
        return MarkedJob(
            id=id_,
            sluid=Sluid(job.step_id.sluid) if job.step_id.sluid else None,
            phase=decode.phase_of(frozenset(job.job_state)),
            is_external=EXTERNAL_JOB in job.flags,
            admin_comment=job.admin_comment,
            nodes=tuple(map(SlurmNode, hostlist.expand(job.nodes))),
        )
    except ValueError as error:
        raise Malformed(operation, f"job {id_}: {error}") from error


async def take_over(client: SlurmClient, id_: JobId, *, comment: str, identity: Identity) -> None:
    """Write our identity into a job, unless the job has it already; it needs a token of root or SlurmUser.

    Raises:
        TargetNotFound: it is gone, has ended, or its `admin_comment` has changed since the decision.
        SlurmError: it was not written.
    """
    written = identities.encode(identity)
    job = await _unchanged(client, id_, comment)
    if job.admin_comment != written:
        body = {"admin_comment": written}
        await update(client, "job.take_over", id_, body, cluster=identity.cluster)


async def cancel(client: SlurmClient, id_: JobId, *, comment: str) -> None:
    """Cancel a job that still has the `admin_comment` that the decision was based on.

    Raises:
        TargetNotFound: it is gone, or its `admin_comment` has changed.
        SlurmError: it may not have been cancelled; repeating is harmless.
    """
    job = await _unchanged(client, id_, comment)
    await jobs.cancel(client, id_, sluid=job.sluid)


async def _unchanged(client: SlurmClient, id_: JobId, comment: str) -> MarkedJob:
    job = await read(client, id_)
    if job is None or job.admin_comment != comment:
        raise TargetNotFound(
            "job.take_over", f"job {id_} is gone or has changed: run the command again"
        )
    return job
