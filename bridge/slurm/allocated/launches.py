"""Where slurmctld is about to launch a job, whoever's it is."""

from bridge.domain import hostlist
from bridge.domain.ids import JobId, SlurmNode
from bridge.domain.observation.lingering import Launch
from bridge.slurm import decode, records
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import Malformed, NotFound


async def launch(client: SlurmClient, job_id: JobId) -> Launch | None:
    """Return what is launched of a job; None if Slurm does not know it (any more).

    For the leader of a heterogeneous job, that includes its components.

    Raises:
        SlurmError: it could not be read.
    """
    try:
        found = await records.read(client, job_id)
    except NotFound:
        return None
    own, *others = (each.value for each in records.components(job_id, found))
    try:
        nodes = [SlurmNode(name) for part in (own, *others) for name in hostlist.expand(part.nodes)]
        phase = decode.phase_of(frozenset(own.job_state))
    except ValueError as error:
        raise Malformed("job.get", f"job {job_id}: {error}") from error
    return Launch(
        phase=phase,
        nodes=tuple(dict.fromkeys(nodes)),
        is_external=decode.EXTERNAL_JOB in own.flags,
    )
