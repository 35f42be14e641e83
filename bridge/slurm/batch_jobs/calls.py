"""Batch jobs of SlurmJobs through slurmrestd: submit, cancel, and look up purged ones in slurmdbd."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from bridge.domain.model import batch, identities
from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.slurm import jobs
from bridge.slurm.batch_jobs import decoding
from slurmclient.api.operation import Value
from slurmclient.errors import Malformed, TargetNotFound
from slurmruntime.slurm import submission, wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid

_EARLIER = timedelta(minutes=5)
"""How much slurmctld's clock may be behind the API server's."""


async def submit(client: SlurmClient, fields: Mapping[str, object], mark: BatchMark) -> JobId:
    """Submit a batch job with its mark; raises what `submission.send` does."""
    return await submission.send(client, {"job": {**fields, "admin_comment": batch.encode(mark)}})


async def cancel(client: SlurmClient, job_id: JobId, sluid: Sluid | None, mark: BatchMark) -> None:
    """Cancel a job of a SlurmJob, after reading that it still is one; succeed if it is gone.

    Raises:
        SlurmError: it may not have been cancelled; repeating is harmless.
    """
    try:
        job = await jobs.marked_job(client, job_id, sluid=sluid)
    except TargetNotFound:
        return
    if isinstance(job, BatchJob) and (job.mark.cluster, job.mark.key) == (
        mark.cluster,
        mark.key,
    ):
        # An array's tasks have sluids of their own; the one that was compared may have ended.
        await jobs.cancel(client, job_id, sluid=None if job.array_id else job.sluid)


async def read_record(
    client: SlurmClient, job_id: JobId, mark: BatchMark, *, sluid: Sluid | None
) -> BatchJob | bool:
    """Return how a job ended according to slurmdbd; if that is not known, whether slurmdbd has a record of it.

    Args:
        client: Slurm.
        job_id: the job's; several jobs may have had it.
        mark: the job's.
        sluid: the job's, which its record has since v0.0.45; None for any, as for an array's tasks.

    Raises:
        TooOld: this slurmrestd has no slurmdbd plugin.
        SlurmError: it could not be read; always, if there is no slurmdbd.
    """
    answer = await client.call(
        "accounting.job", "slurmdb_get_job", {"job_id": job_id}, answer=wire.BatchAccountedJobs
    )
    # A record has no mark until its job has ended.
    own = (job for job in answer.jobs or () if not job.time.end or _mark(job) == mark)
    same = (job for job in own if sluid is None or job.sluid in ("", sluid))
    return _outcome(answer, same, mark)


async def search(
    client: SlurmClient, mark: BatchMark, *, since: datetime, name: str, user: str
) -> BatchJob | bool:
    """Search for a job by its mark, which slurmdbd has once the job has ended; return the same as `read_record`.

    Args:
        client: Slurm.
        mark: the job's.
        since: when it may have been submitted at the earliest.
        name: the job's name; "" for any.
        user: the job's user; "" for any.

    Raises:
        TooOld, SlurmError: as `read_record`.
    """
    query: dict[str, Value] = {
        "start_time": str(int((since - _EARLIER).timestamp())),
        "skip_steps": "true",
        **({"job_name": name} if name else {}),
        **({"users": user} if user else {}),
    }
    answer = await client.call(
        "accounting.jobs", "slurmdb_get_jobs", query=query, answer=wire.BatchAccountedJobs
    )
    return _outcome(answer, (job for job in answer.jobs or () if _mark(job) == mark), mark)


def _outcome(
    answer: wire.BatchAccountedJobs, records: Iterable[wire.BatchAccountingRecord], mark: BatchMark
) -> BatchJob | bool:
    if answer.jobs is None:
        raise Malformed("accounting.job", "the response has no list of jobs")
    if not (own := list(records)):
        return False
    return decoding.accounted(own, mark) or True


def _mark(record: wire.BatchAccountingRecord) -> BatchMark | None:
    try:
        return batch.decode(record.comment.administrator)
    except identities.UnreadableIdentityError:
        return None
