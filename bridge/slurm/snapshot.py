"""What one reading of Slurm found: our jobs of both kinds, and what could not be read."""

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
    """Slurm listed exactly the jobs and states of the reading before, strangers included."""
    is_whole: bool
    """Every listed job that may be a placeholder has been classified; only then does absence mean
    anything."""
    is_whole_of_batch: bool = True
    """The same of batch jobs, whose arrays may be many more."""
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
    unsure: Iterable[WorkloadKey | None],
    arrays: ArrayMemory,
    has_all_tasks: bool = True,
) -> Snapshot:
    """Sort what is known by kind and by whose it is; number, time and wholeness are those of no reading yet.

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
        whole = parts[0]
        if whole.array_id is not None:
            whole = arrays.merged(parts, is_whole=has_all_tasks)
        batch_by_key[whole.mark.key] = (*batch_by_key.get(whole.mark.key, ()), whole)
    return Snapshot(
        sequence=0,
        began_monotonic=0,
        is_repeated=False,
        is_whole=True,
        jobs=MappingProxyType(placeholders),
        by_key=MappingProxyType(by_key),
        batch_by_key=MappingProxyType(batch_by_key),
        unreadable=MappingProxyType(dict(unreadable)),
        unsure=frozenset(key for key in unsure if key is not None),
    )


def key_of(job: SlurmJob | BatchJob) -> WorkloadKey:
    """Return whose job it is: a workload's key, or a SlurmJob's uid."""
    return job.mark.key if isinstance(job, BatchJob) else job.identity.key
