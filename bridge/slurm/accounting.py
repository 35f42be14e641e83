"""Tell a job that slurmctld lost from one that ended and was purged.

The evidence is slurmdbd's record of the job and the job ids slurmctld assigns. It is looked up only
for missing placeholders of live pods. slurmdbd returns several jobs for an id if slurmctld ever lost
its state; since v0.0.45 their SLUIDs tell them apart.
"""

from bridge.domain.lifecycle.evidence import AccountingRecord, Numbering
from bridge.slurm import decode
from slurmclient.errors import Malformed
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid


async def record(
    client: SlurmClient, id_: JobId, *, sluid: Sluid | None
) -> AccountingRecord | None:
    """Return slurmdbd's record of a job; None if it has no record, or several that may be it.

    Raises:
        TooOld: this slurmrestd has no slurmdbd plugin.
        SlurmError: the record could not be read; always, if there is no slurmdbd.
    """
    answer = await client.call(
        "accounting.job", "slurmdb_get_job", {"job_id": id_}, answer=wire.AccountingRecords
    )
    if answer.jobs is None:
        raise Malformed("accounting.job", "the response has no list of jobs")
    matches = [job for job in answer.jobs if sluid is None or job.sluid in ("", sluid)]
    if len(matches) != 1:
        return None
    (wired,) = matches
    return AccountingRecord(
        states=frozenset(wired.state.current),
        started_at=decode.unix_moment(wired.time.start),
        ended_at=decode.unix_moment(wired.time.end),
        ended_by=wired.kill_request_user,
        says_time_limit=wired.time.limit.set or wired.time.limit.infinite,
        time_limit_min=None if wired.time.limit.infinite else wired.time.limit.positive,
    )


async def backlog(client: SlurmClient) -> int:
    """Return the length of slurmctld's queue of updates for slurmdbd; may raise SlurmError.

    While it is not 0, slurmdbd may not know yet that jobs have ended.
    """
    answer = await client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
    return answer.statistics.dbd_agent_queue_size


async def numbering(client: SlurmClient) -> Numbering:
    """Return the next job id that slurmctld will assign.

    Raises:
        TooOld: the server lacks data parser v0.0.45, which introduced this.
        SlurmError: it could not be read.
    """
    answer = await client.call("conf", "slurm_get_conf", answer=wire.Configuration)
    next_id, last_id = answer.slurm_conf_meta.next_job_id.positive, answer.slurm_conf.last_job_id
    if next_id is None or not last_id:
        raise Malformed("conf", "the response does not give the range of job ids")
    return Numbering(next_id=JobId(next_id), last_id=JobId(last_id))
