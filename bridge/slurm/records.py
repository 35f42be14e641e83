"""Read the records of one job: one, each component of a heterogeneous job, or each task of an array.

One GET of a job costs slurmrestd as much as five jobs of a list, and us more. Where many jobs are
to be read, they are therefore taken from one list of all, unless most of that would be others'.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from bridge.domain.ids import JobId, Sluid
from bridge.slurm import wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import Malformed, SlurmError
from slurmclient.wire import reading
from slurmclient.wire.reading import Decoded, Unreadable


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One record of an answer."""

    raw: bytes
    decoded: Decoded[wire.Job]


FEWEST_LISTED: Final = 16
"""Fewer are read one by one."""
_LISTED_FOR_ONE: Final = 5
"""Jobs of a list that cost slurmrestd as much as a GET of one: 0.5 ms each, and 2.6."""
MOST_LISTED: Final = 2000
"""A longer list is never asked for: this one is about 10 MB, and a second of slurmrestd."""

NONE_LISTED: Mapping[JobId, Sequence["JobRecord"]] = MappingProxyType({})


class _Single(Struct, frozen=True):
    """What tells whether a job has one record, which stands for nothing else."""

    job_id: int
    het_job_id: wire.Number = wire.NONE
    array_job_id: wire.Number = wire.NONE

    @property
    def is_single(self) -> bool:
        return self.het_job_id.positive is None and self.array_job_id.positive is None


def pays(wanted: int, of: int) -> bool:
    """Check whether one list of all jobs is cheaper than a GET of each wanted one."""
    return wanted >= FEWEST_LISTED and of <= min(wanted * _LISTED_FOR_ONE, MOST_LISTED)


async def listed(
    client: SlurmClient, wanted: Collection[JobId], *, of: int
) -> Mapping[JobId, Sequence[JobRecord]]:
    """Return the records of wanted jobs from one list of all, if that is cheaper.

    What is missing has to be read by itself: arrays, heterogeneous jobs, what cannot be decoded,
    what is gone, and everything if there is no list.

    Args:
        client: slurmrestd.
        wanted: the jobs to read.
        of: how many jobs Slurm has.
    """
    if not pays(len(wanted), of):
        return NONE_LISTED
    try:
        answer = await client.call(
            "job.list", "slurm_get_jobs", query={"flags": "ALL"}, answer=wire.Jobs
        )
    except SlurmError:
        return NONE_LISTED  # if Slurm is in trouble, the first job's GET says which
    found: dict[JobId, Sequence[JobRecord]] = {}
    for raw in map(bytes, answer.jobs or ()):
        one = reading.lenient(raw, _Single)
        if isinstance(one, Unreadable) or one.odd or not one.value.is_single:
            continue
        if (id_ := JobId(one.value.job_id)) in wanted:
            read = reading.lenient(raw, wire.Job, is_null_odd=True)
            if isinstance(read, Decoded):
                found[id_] = (JobRecord(raw, read),)
    return found


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
