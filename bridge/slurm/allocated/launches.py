"""Read where a job, ours or not, is about to start."""

from bridge.domain.observation.lingering import Launch
from bridge.slurm import decode
from slurmclient.errors import Malformed, TargetNotFound
from slurmruntime.slurm import records
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import hostlist
from slurmruntime.values.ids import JobId, SlurmNode


async def launch(client: SlurmClient, job_id: JobId) -> Launch | None:
    """Return phase and nodes of a job that is about to start; None if Slurm does not know it (any more).

    For the leader of a heterogeneous job, this includes its components.

    Raises:
        SlurmError: it could not be read.
    """
    try:
        answer = await records.read(client, job_id)
    except TargetNotFound:
        return None
    own, *others = (component.value for component in records.components(job_id, answer))
    try:
        nodes = [SlurmNode(name) for part in (own, *others) for name in hostlist.expand(part.nodes)]
        phase = decode.phase_of(frozenset(own.job_state))
    except ValueError as error:
        raise Malformed("job.get", f"job {job_id}: {error}") from error
    return Launch(
        phase=phase, nodes=tuple(dict.fromkeys(nodes)), is_external=decode.EXTERNAL_JOB in own.flags
    )
