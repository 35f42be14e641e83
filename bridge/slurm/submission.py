"""Send a job to slurmctld, and tell what its answer means: the same for jobs of both kinds."""

from collections.abc import Mapping

from bridge.domain.ids import JobId
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import LostReply, Malformed, Rejected
from slurmclient.wire.reading import Answer

_OPERATION = "job.submit"


async def send(client: SlurmClient, body: Mapping[str, object]) -> JobId:
    """Submit a job.

    Raises:
        LostReply: it may have been accepted; look it up by its mark before submitting again.
        Rejected: it was rejected, with Slurm's message for the user.
        SlurmError: it was not accepted for another reason.
    """
    try:
        answer = await client.call(_OPERATION, "slurm_post_job_submit", body=body, answer=Answer)
    except Rejected as refusal:
        # slurmrestd may report an error (an unknown flag: HTTP 500) and still submit the job.
        if refusal.job_id:
            return JobId(refusal.job_id)
        raise
    except Malformed as error:
        raise LostReply(_OPERATION, error.words, status=error.status) from error
    if not answer.job_id:
        # A rejection may be HTTP 200 with warnings only, for example for a field of the wrong type.
        raise Rejected(_OPERATION, _remarks(answer) or "the response has no job id and no reason")
    return JobId(answer.job_id)


def _remarks(answer: Answer) -> str:
    return "; ".join(remark.description for remark in answer.warnings or ())
