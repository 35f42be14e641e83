"""What tells a job that slurmctld lost from one that ended and was purged: slurmdbd's record of it, and how ids are given out.

Asked only about placeholders that live pods miss. slurmdbd answers by SLUID with that very job; by job id, if slurmctld
ever lost its state, with several.
"""

from datetime import UTC, datetime

from bridge.domain.ids import JobId, Sluid
from bridge.domain.lifecycle.evidence import AccountedJob, Numbering
from bridge.slurm import wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import Malformed


async def record(client: SlurmClient, ref: JobId | Sluid) -> AccountedJob | None:
    """Read what slurmdbd knows of a job; None: nothing, or of several that had this id.

    Raises:
        TooOld: this slurmrestd does not speak to slurmdbd.
        SlurmError: it could not be read; without slurmdbd, always.
    """
    answer = await client.call(
        "accounting.job", "GET", f"/job/{ref}", plugin="slurmdb", answer=wire.AccountedJobs
    )
    if answer.jobs is None:
        raise Malformed("accounting.job", "the answer has no list of jobs")
    return _record(answer.jobs[0]) if len(answer.jobs) == 1 else None


async def backlog(client: SlurmClient) -> int:
    """Ask how much slurmctld has yet to tell slurmdbd: while that is anything, ends may be missing there.

    Raises:
        SlurmError: it could not be read.
    """
    answer = await client.call("diag", "GET", "/diag/", answer=wire.Diagnosis)
    return answer.statistics.dbd_agent_queue_size


async def numbering(client: SlurmClient) -> Numbering:
    """Ask slurmctld which job id it gives out next.

    Raises:
        TooOld: the server has no data parser v0.0.45, where this came.
        SlurmError: it could not be read.
    """
    answer = await client.call("conf", "GET", "/conf", answer=wire.Configuration)
    next_id, last_id = answer.slurm_conf_meta.next_job_id.positive, answer.slurm_conf.last_job_id
    if next_id is None or not last_id:
        raise Malformed("conf", "the answer does not say which job ids are given out")
    return Numbering(next_id=JobId(next_id), last_id=JobId(last_id))


def _record(wired: wire.Accounted) -> AccountedJob:
    return AccountedJob(
        states=frozenset(wired.state.current),
        started_at=_moment(wired.time.start),
        ended_at=_moment(wired.time.end),
        ended_by=wired.kill_request_user,
        says_time_limit=wired.time.limit.set or wired.time.limit.infinite,
        time_limit_min=None if wired.time.limit.infinite else wired.time.limit.positive,
    )


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
