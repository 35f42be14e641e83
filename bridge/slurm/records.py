"""Read the records of one job: one, each component of a heterogeneous job, or each task of an array."""

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.domain.ids import JobId, Sluid
from bridge.slurm import wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import Malformed
from slurmclient.wire import reading
from slurmclient.wire.reading import Decoded, Unreadable


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One record of an answer."""

    raw: bytes
    decoded: Decoded[wire.Job]


async def read(client: SlurmClient, ref: JobId | Sluid, *, detail: bool = False) -> list[JobRecord]:
    """Return the job's records: one, each component of a heterogeneous job, each task of an array.

    detail: with what it has of each core, up to 300 kB, which is needed only if tasks share nodes.
    """
    query = {} if detail else {"flags": "ALL"}  # SHOW_ALL omits the detail
    answer = await client.call(
        "job.get", "slurm_get_job", {"job_id": ref}, query=query, answer=wire.Jobs
    )
    found: list[JobRecord] = []
    for raw in map(bytes, answer.jobs or ()):
        read = reading.lenient(raw, wire.Job, is_null_odd=True)
        if isinstance(read, Unreadable):
            raise Malformed("job.get", f"job {ref}: {read.why}")
        found.append(JobRecord(raw, read))
    return found


def of(ref: JobId | Sluid, records: Sequence[JobRecord]) -> Decoded[wire.Job]:
    """Return the record of the job itself."""
    for each in records:  # the response for a het leader includes its components
        wired = each.decoded.value
        if ref in (wired.job_id, wired.step_id.sluid):
            return each.decoded
    # Not `NotFound`, for which Slurm sends 404 and on which pods are given up.
    raise Malformed("job.get", f"the response does not contain job {ref}")


def components(ref: JobId | Sluid, records: Sequence[JobRecord]) -> list[Decoded[wire.Job]]:
    """Return the job, followed by the further components in order if it leads any."""
    own = of(ref, records)
    others = [
        each.decoded
        for each in records
        if each.decoded.value.het_job_id.positive == own.value.job_id and each.decoded is not own
    ]
    others.sort(key=lambda component: component.value.het_job_offset.number)
    return [own, *others]
