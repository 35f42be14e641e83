"""The result of one reading of Slurm: our jobs of both kinds, and those that could not be read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bridge.domain.model.batch import BatchJob
from bridge.domain.model.jobs import SlurmJob
from bridge.slurm.batch_jobs.arrays import ArrayMemory
from slurmruntime.values.ids import JobId, WorkloadKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The result of one successful reading."""

    sequence: int
    """Number of the reading; consecutive readings have consecutive numbers."""
    began_monotonic: float
    """When the first request of its list was sent, by the clock given to `Discovery`; later writes may be
    missing. Of two readings with the same moment, the second has the list of the first."""
    jobs: Mapping[JobId, SlurmJob]
    """This cluster's placeholders, including ended ones until Slurm purges them (MinJobAge)."""
    by_key: Mapping[WorkloadKey, tuple[SlurmJob, ...]]
    """The same jobs by the key of their workload, lowest id first."""
    is_repeated: bool
    """Slurm listed exactly the jobs and states of the reading before, foreign jobs included."""
    is_whole: bool
    """Every listed job that may be a placeholder has been classified; only then does absence mean
    anything."""
    is_whole_of_batch: bool = True
    """The same for batch jobs: arrays may have very many records."""
    batch_by_key: Mapping[WorkloadKey, tuple[BatchJob, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """This cluster's batch jobs by the uid of their SlurmJob, lowest id first; they are not among
    `jobs`."""
    unreadable: Mapping[JobId, str]
    """Jobs that are or may be ours but cannot be decoded, and why; they must be left alone."""
    unsure: frozenset[WorkloadKey] = frozenset()
    """The workloads of unreadable jobs, if that much can be decoded."""
    is_behind: bool = False
    """There were more unknown jobs than one reading fetches: read again soon."""


def taken(
    ours: Iterable[SlurmJob | BatchJob],
    *,
    unreadable: Mapping[JobId, str],
    unsure: Iterable[WorkloadKey],
    arrays: ArrayMemory,
    has_all_tasks: bool = True,
) -> Snapshot:
    """Sort the known jobs by kind and workload; the caller sets number, time and completeness.

    has_all_tasks: no listed task of an array is still unread.
    """
    placeholders: dict[JobId, SlurmJob] = {}
    by_key: dict[WorkloadKey, tuple[SlurmJob, ...]] = {}
    batch: dict[JobId, list[BatchJob]] = {}
    for job in sorted(ours, key=lambda one: one.id):
        key = key_of(job)
        if isinstance(job, BatchJob):
            batch.setdefault(job.array_id or job.id, []).append(job)
        else:
            placeholders[job.id] = job
            by_key[key] = (*by_key.get(key, ()), job)
    batch_by_key: dict[WorkloadKey, tuple[BatchJob, ...]] = {}
    for _, parts in sorted(batch.items()):
        batch_job = parts[0]
        if batch_job.array_id is not None:
            batch_job = arrays.merged(parts, is_whole=has_all_tasks)
        key = batch_job.mark.key
        batch_by_key[key] = (*batch_by_key.get(key, ()), batch_job)
    return Snapshot(
        sequence=0,
        began_monotonic=0,
        is_repeated=False,
        is_whole=True,
        jobs=MappingProxyType(placeholders),
        by_key=MappingProxyType(by_key),
        batch_by_key=MappingProxyType(batch_by_key),
        unreadable=MappingProxyType(dict(unreadable)),
        unsure=frozenset(unsure),
    )


def key_of(job: SlurmJob | BatchJob) -> WorkloadKey:
    """Return the key of a job's workload, or the uid of its SlurmJob."""
    return job.mark.key if isinstance(job, BatchJob) else job.identity.key
