"""Read which CPUs a running job has on a node, as Slurm numbers them."""

import msgspec

from bridge.domain.model.cores import cpu_list, topology
from slurmclient.errors import Malformed, TargetNotFound
from slurmruntime.slurm import records, wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid, SlurmNode

_sockets = msgspec.json.Decoder(list[wire.CoreSocket])


async def of_job(
    client: SlurmClient, id_: JobId, node: SlurmNode, *, sluid: Sluid | None, threads: int
) -> frozenset[int]:
    """Return the numbers of a job's CPUs on a node; empty if Slurm names none there.

    Args:
        sluid: the sluid it must have; None for any.
        threads: threads per core of the node in Slurm.

    Raises:
        TargetNotFound: the job does not exist or run (any more).
        SlurmError: it could not be read.
    """
    wired = records.of(id_, await records.read(client, id_, sluid=sluid, detail=True)).value
    resources = wired.job_resources
    if "RUNNING" not in wired.job_state:
        raise TargetNotFound(
            "job.get", f"job {id_} is {'+'.join(wired.job_state)}, expected RUNNING"
        )
    allocations = resources.nodes.allocation if resources and resources.nodes else None
    for allocation in allocations or ():
        if allocation.name == node:
            return numbers(bytes(allocation.sockets), threads)
    return frozenset()


def numbers(sockets: bytes, threads: int) -> frozenset[int]:
    """Return the numbers of the CPUs whose cores are allocated.

    Raises Malformed if this is not what Slurm sends.
    """
    try:
        decoded = _sockets.decode(sockets)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Malformed("job.get", f"the cores of a job: {error}") from error
    own = {
        socket.index: [core.index for core in socket.cores if "ALLOCATED" in core.status]
        for socket in decoded
    }
    width = max((len(socket.cores) for socket in decoded), default=0)
    if any(
        not 0 <= index < cpu_list.MOST
        for index in (*own, *(core for cores in own.values() for core in cores), width * threads)
    ):
        raise Malformed("job.get", "the cores of a job: an index is too large")
    return topology.numbered(own, threads, cores_per_socket=width)
