"""Make slurmctld's scheduler run now: the one message that does it, a repeated end of an epilog.

A submit or an end only marks that there is work; slurmctld's main loop checks that at whole seconds, and
after an end of a job without a slurmd only once in `sched_interval`. Of all RPCs,
MESSAGE_EPILOG_COMPLETE alone calls `schedule()` itself (src/slurmctld/proc_req.c, 25.05 to 26.05).
slurmd sends it for every node of every job that ends, and slurmctld expects repetitions.

For a job that has ended since slurmctld started, on nodes, with return code 0 and no node's name,
`job_epilog_complete` (src/slurmctld/job_mgr.c) changes nothing; then the scheduler's own thread is
woken, and requests that come while it runs are one. slurmctld logs a line ("passed NULL node
name"). For any other job it changes nothing either, does not schedule, and logs an error.
With `defer` in SchedulerParameters, Slurm only marks that there is work.

    body since 25.11: u64 sluid, u32 job id, u32 step, u32 het component, u32 return code, str node
    body of 25.05:    u32 job id, u32 return code, str node
"""

import struct
from dataclasses import dataclass
from typing import Final

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.slurm import complete
from bridge.slurm.complete import HAS_STEP_ID, NO_VAL, ControllerHosts
from slurmclient.errors import classify
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid

MESSAGE_EPILOG_COMPLETE: Final = 6012
OPERATION: Final = "scheduler.kick"

_BODY: Final = struct.Struct("!QIIIII")
_OLD_BODY: Final = struct.Struct("!III")
_NO_NODE: Final = 0
"""The length of the empty string."""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A placeholder of ours that ran on nodes and ended since slurmctld started."""

    id: JobId
    sluid: Sluid | None


def ended_job(before: SlurmJob | None, job: SlurmJob) -> EndedJob | None:
    """Return a job that has just ended, if it ran on nodes; None for any other.

    before: the job as last read from the same slurmctld; None if it was not.
    """
    was_alive = before is not None and not _is_over(before)
    return EndedJob(job.id, job.sluid) if was_alive and _is_over(job) and job.nodes else None


def _is_over(job: SlurmJob) -> bool:
    return job.phase is JobPhase.ENDED and "COMPLETING" not in job.states and not job.remains


async def kick(client: SlurmClient, controllers: ControllerHosts, job: EndedJob) -> None:
    """Have slurmctld schedule now.

    Raises:
        Unavailable: no slurmctld in charge could be reached; LostReply: or it did not answer.
        Unauthorized: the token does not belong to SlurmUser or root.
        Malformed: what answered is not slurmctld.
        SlurmError: slurmctld refuses, classified by `slurmruntime.slurm.errors`.
    """
    protocol = complete.protocol_for((await client.dialect()).release_number)
    with client.observed(OPERATION):
        token = await client.token.token()
        code = await controllers.ask(message(protocol, token, job))
        if code:
            raise classify(OPERATION, None, code)(OPERATION, "slurmctld refuses", error_number=code)


def message(protocol: int, token: str, job: EndedJob) -> bytes:
    """Return the whole message, starting with its length."""
    if protocol >= HAS_STEP_ID:
        sluid = complete.sluid_number(job.sluid) if job.sluid else 0
        body = _BODY.pack(sluid, job.id, NO_VAL, NO_VAL, 0, _NO_NODE)
    else:
        body = _OLD_BODY.pack(job.id, 0, _NO_NODE)
    return complete.framed(protocol, token, MESSAGE_EPILOG_COMPLETE, body)
