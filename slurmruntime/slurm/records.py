"""Read the records of one job: one, each component of a heterogeneous job, or each task of an array.

Only here a job is verified to be the intended one. Requests name it by its id, as no path accepts a sluid
before Slurm 26.05; ids are reused after a crash of slurmctld, so the known sluid is compared with that of the
record.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from slurmclient.errors import Malformed, TargetNotFound
from slurmclient.wire import reading
from slurmclient.wire.reading import DecodeResult, Unreadable
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid

_TAKES_SLUIDS: Final = 45
"""The first API version whose slurmrestd always accepts a sluid in a path: v0.0.45."""

_SUMMARY: Final = {"flags": "ALL"}
"""SHOW_ALL omits the detail."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One record of an answer."""

    raw: bytes
    decoded: DecodeResult[wire.Job]


async def read(
    client: SlurmClient,
    id_: JobId,
    *,
    sluid: Sluid | None = None,
    detail: bool = False,
    alone: Sluid | None = None,
) -> list[JobRecord]:
    """Return the job's records: one, each component of a heterogeneous job, each task of an array.

    Args:
        sluid: the sluid it must have; None for any.
        detail: include the state of each core, up to 300 kB; needed only if tasks share nodes.
        alone: the sluid of a record of an array: the id returns all tasks, the sluid, if slurmrestd accepts
            it, the record alone.

    Raises:
        TargetNotFound: there is no such job (any more), or its id belongs to another one by now.
        SlurmError: it could not be read.
    """
    by_sluid = alone is not None and (await client.dialect()).version >= _TAKES_SLUIDS
    answer = await client.call(
        "job.get",
        "slurm_get_job",
        {"job_id": alone if by_sluid and alone else id_},
        query={} if detail else _SUMMARY,
        answer=wire.Jobs,
    )
    raws = [bytes(raw) for raw in answer.jobs or ()]
    _compare(id_, sluid, raws)
    records: list[JobRecord] = []
    for raw in raws:
        read = reading.lenient(raw, wire.Job, is_null_odd=True)
        if isinstance(read, Unreadable):
            raise Malformed("job.get", f"job {id_}: {read.why}")
        records.append(JobRecord(raw, read))
    return records


async def verify(client: SlurmClient, id_: JobId, sluid: Sluid) -> None:
    """Verify that an id is still that job's, even if the rest of its record is odd; raises like `read`."""
    answer = await client.call(
        "job.get", "slurm_get_job", {"job_id": id_}, query=_SUMMARY, answer=wire.Jobs
    )
    _compare(id_, sluid, map(bytes, answer.jobs or ()))


def of(id_: JobId, records: Sequence[JobRecord]) -> DecodeResult[wire.Job]:
    """Return the record of the job itself."""
    for record in records:  # the response for a het leader includes its components
        if record.decoded.value.job_id == id_:
            return record.decoded
    # Not `TargetNotFound`, for which Slurm sends 404 and on which pods are given up.
    raise Malformed("job.get", f"the response does not contain job {id_}")


def components(id_: JobId, records: Sequence[JobRecord]) -> list[DecodeResult[wire.Job]]:
    """Return the job, followed by the further components in order if it leads any."""
    own = of(id_, records)
    others = [
        record.decoded
        for record in records
        if record.decoded.value.het_job_id.positive == own.value.job_id
        and record.decoded is not own
    ]
    others.sort(key=lambda component: component.value.het_job_offset.number)
    return [own, *others]


def _compare(id_: JobId, sluid: Sluid | None, raws: Iterable[bytes]) -> None:
    """Raise `TargetNotFound` if the record with this id has another sluid; v0.0.43 has none."""
    if sluid is None:
        return
    for raw in raws:
        read = reading.lenient(raw, wire.JobName)
        if isinstance(read, Unreadable) or read.value.job_id != id_:
            continue
        if read.value.step_id.sluid not in ("", sluid):
            raise TargetNotFound("job.get", f"job {id_} is another job by now: {sluid} is gone")
