"""Submit a job, and interpret the answer; the same for jobs of both kinds."""

from collections.abc import Mapping, Sequence

from slurmclient import Dialect
from slurmclient.errors import Declined, LostReply, Malformed
from slurmclient.wire.reading import Answer
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import NOT_CONVERTED, SCRIPT_MISSING
from slurmruntime.values.ids import JobId

_OPERATION = "job.submit"
_NAMES_GROUPS = 44
"""The first API version that accepts a group by its name: v0.0.44."""


async def send(client: SlurmClient, body: Mapping[str, object]) -> JobId:
    """Submit a job.

    Raises:
        LostReply: it may have been accepted; look it up by its mark before submitting again.
        Declined: it was rejected, with Slurm's message for the user.
        SlurmError: it was not accepted for another reason.
    """
    try:
        answer = await client.call(_OPERATION, "slurm_post_job_submit", body=body, answer=Answer)
    except Declined as refusal:
        # slurmrestd may report an error (an unknown flag: HTTP 500) and still submit the job.
        if refusal.job_id:
            return JobId(refusal.job_id)
        if refusal.error_number not in (SCRIPT_MISSING, NOT_CONVERTED):
            raise
        if not (advice := _advice(refusal, body, await client.dialect())):
            raise
        raise Declined(
            _OPERATION,
            f"{advice} ({refusal.words})",
            status=refusal.status,
            error_number=refusal.error_number,
        ) from refusal
    except Malformed as error:
        raise LostReply(_OPERATION, error.words, status=error.status) from error
    if not answer.job_id:
        # A rejection may be HTTP 200 with warnings only, for example for a field of the wrong type.
        words = "; ".join(remark.description for remark in answer.warnings or ())
        raise Declined(_OPERATION, words or "the response has no job id and no reason")
    return JobId(answer.job_id)


def _advice(refusal: Declined, body: Mapping[str, object], dialect: Dialect) -> str:
    """Return what to do if an older release does not support the request; "" if that is not the cause."""
    if refusal.error_number == SCRIPT_MISSING and "jobs" in body:
        return (
            f"Slurm {dialect.release} accepts no heterogeneous job without a script, which a gang with"
            " pods of several sizes needs: give its pods the same requests, or upgrade Slurm to 26.05"
        )
    groups = [
        group for job in _jobs(body) if not (group := str(job.get("group_id", ""))).isdecimal()
    ]
    if refusal.error_number == NOT_CONVERTED and dialect.version < _NAMES_GROUPS and groups:
        return (
            f"Slurm {dialect.release} accepts a job's group only as a number: write, in quotes, the gid of group"
            f" {groups[0]!r} as slurm.group, or as the group of the policy's rule"
        )
    return ""


def _jobs(body: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    several, one = body.get("jobs"), body.get("job")
    jobs = several if isinstance(several, list) else [one]
    return [job for job in jobs if isinstance(job, Mapping)]
