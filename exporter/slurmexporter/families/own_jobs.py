"""Own names: jobs now, and counters of what has happened to them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from slurmexporter.families import counting
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.figures import FigureSet, one
from slurmexporter.families.picture import JobsReading, Picture
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.job import Job
from slurmexporter.readings.states import JOB_FLAGS, JOB_STATES
from slurmexporter.text.family import Family, Metric, by_name, counter, gauge, histogram

_TASKS: Final = "each array task counts as a job"
STATE: Final = gauge("slurm_jobs_by_state", f"Jobs by base state; {_TASKS}.", "state")
FLAG: Final = gauge(
    "slurm_jobs_by_flag", f"Jobs by flag, besides their base state; {_TASKS}.", "flag"
)
HELD: Final = gauge("slurm_jobs_held", f"Jobs held by a user or administrator; {_TASKS}.")
PARTITION: Final = gauge(
    "slurm_partition_jobs_by_state",
    "Jobs by partition and base state. A pending job counts in every partition it may run in.",
    "partition",
    "state",
)
ACCOUNT: Final = gauge(
    "slurm_account_jobs_by_state", "Jobs by account and base state.", "account", "state"
)
USER: Final = gauge("slurm_user_jobs_by_state", "Jobs by user and base state.", "user", "state")
QOS: Final = gauge("slurm_qos_jobs_by_state", "Jobs by QOS and base state.", "qos", "state")

_RESOURCES: Final = ("cpus", "gpus", "memory_bytes", "nodes")
_WORDS: Final = {
    "cpus": "CPUs",
    "gpus": "GPUs",
    "memory_bytes": "Bytes of memory",
    "nodes": "Nodes",
}
_NOTES: Final = {"nodes": " A node counts once for each of its jobs."}


def _resources(prefix: str, words: str, label: str) -> Mapping[str, Family]:
    return {
        name: gauge(
            f"{prefix}_{name}", f"{_WORDS[name]} {words}, by {label}.{_NOTES.get(name, '')}", label
        )
        for name in _RESOURCES
    }


ALLOCATED: Final = _resources("slurm_allocated", "allocated to jobs", "partition")
REQUESTED: Final = _resources("slurm_requested", "requested by pending jobs", "partition")
ACCOUNT_ALLOCATED: Final = _resources("slurm_account_allocated", "allocated to jobs", "account")
USER_ALLOCATED: Final = _resources("slurm_user_allocated", "allocated to jobs", "user")
QOS_ALLOCATED: Final = _resources("slurm_qos_allocated", "allocated to jobs", "qos")

PENDING: Final = gauge(
    "slurm_pending_jobs",
    f"Pending jobs by Slurm's reason; {_TASKS}. Its age is slurm_pending_reason_age_seconds.",
    "partition",
    "reason",
)
DEPENDENT: Final = gauge(
    "slurm_pending_dependent_jobs", f"Pending jobs with dependencies; {_TASKS}."
)
OLDEST: Final = gauge(
    "slurm_oldest_pending_seconds",
    "Age of the oldest pending job that is able to start.",
    "partition",
)
REASON_AGE: Final = gauge(
    "slurm_pending_reason_age_seconds", "Age of the stalest pending-job reading."
)

_BY: Final = ("partition", "account")
SUBMITS: Final = counter("slurm_job_submits_total", f"Jobs submitted; {_TASKS}.", *_BY)
STARTS: Final = counter("slurm_job_starts_total", "Job starts, restarts included.", *_BY)
REQUEUES: Final = counter("slurm_job_requeues_total", "Jobs requeued.", *_BY)
ENDS: Final = counter(
    "slurm_job_ends_total",
    "Jobs ended, each counted once. LOST: slurmctld forgot the job before the exporter saw its end.",
    *_BY,
    "state",
)
WAIT: Final = histogram("slurm_job_wait_seconds", "Time from eligible to started.", "partition")
RUN: Final = histogram(
    "slurm_job_run_seconds",
    "Run time of finished jobs, excluding suspension.",
    "partition",
    "state",
)
LIMIT: Final = histogram(
    "slurm_job_timelimit_used_ratio",
    "Fraction of the time limit that finished jobs used.",
    "partition",
)
_HELD_FOR: Final = "allocated to jobs so far, excluding suspension."
CPU_S: Final = counter("slurm_allocated_cpu_seconds_total", f"CPU-seconds {_HELD_FOR}", *_BY)
GPU_S: Final = counter("slurm_allocated_gpu_seconds_total", f"GPU-seconds {_HELD_FOR}", *_BY)
NODE_S: Final = counter("slurm_allocated_node_seconds_total", f"Node-seconds {_HELD_FOR}", *_BY)
UNREAD: Final = gauge(
    "slurm_exporter_unread_jobs", "Jobs whose latest state has not been read in detail yet."
)

_INFO_LABELS: Final = ("job_id", "user", "account", "partition", "qos", "name", "state")
INFO: Final = gauge(
    "slurm_job_info", "A job that has not ended; always 1. Needs --job-info.", *_INFO_LABELS
)
ONE: Final[FigureSet[Job]] = FigureSet(
    "slurm_job",
    {
        "cpus": one("CPUs of a job", lambda job: job.cpus),
        "gpus": one("GPUs of a job", lambda job: job.gpus),
        "memory_bytes": one("Memory of a job", lambda job: job.memory_bytes),
        "start_timestamp_seconds": one(
            "When a job started", lambda job: job.start_s if job.has_started else None
        ),
        "end_limit_timestamp_seconds": one(
            "When a job reaches its time limit",
            lambda job: job.start_s + job.limit_s if job.has_started else None,
        ),
    },
    "job_id",
    ends=". Needs --job-info.",
)


def jobs_now(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs by state, partition, account, user and QOS, and the resources they have or request."""
    cells, out = _reading(picture).cells, MetricBuilder()
    _states(out, STATE, (), cells, *JOB_STATES)
    for flag in JOB_FLAGS:
        out.add(FLAG, sum(cell.tasks for cell in cells if flag in cell.traits.flags), flag)
    out.add(HELD, sum(cell.tasks for cell in cells if cell.traits.is_held))
    for name, group in counting.by_partition(picture, cells).items():
        _states(out, PARTITION, (name,), group, *JOB_STATES)
        _amounts(out, ALLOCATED, name, (cell for cell in group if cell.holds))
        _amounts(out, REQUESTED, name, (cell for cell in group if cell.is_pending))
    for family, amounts, groups in (
        (ACCOUNT, ACCOUNT_ALLOCATED, counting.by_account(cells, limits)),
        (USER, USER_ALLOCATED, counting.by_user(cells, limits)),
        (QOS, QOS_ALLOCATED, counting.by_qos(cells)),
    ):
        for name, group in groups.items():
            _states(out, family, (name,), group)
            _amounts(out, amounts, name, (cell for cell in group if cell.holds))
    return out


def waiting(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return why jobs are pending, and for how long."""
    reading, out = _reading(picture), MetricBuilder()
    pending = [cell for cell in reading.cells if cell.is_pending]
    for name, group in counting.by_partition(picture, pending).items():
        for reason, tasks in counting.tasks(
            group, lambda cell: cell.traits.reason or "None"
        ).items():
            out.add(PENDING, tasks, name, reason)
        able = [cell.oldest_s for cell in group if not cell.traits.is_held and cell.oldest_s]
        out.add(OLDEST, max(0.0, reading.at_s - min(able, default=reading.at_s)), name)
    out.add(DEPENDENT, sum(cell.tasks for cell in pending if cell.traits.has_dependency))
    out.add(REASON_AGE, reading.reason_age_s)
    out.add(UNREAD, reading.unread)
    return out


def counters(picture: Picture, _: Limits) -> Iterator[Metric]:
    """Return the counters and histograms of what has happened to jobs."""
    tally: Tally = _reading(picture).tally
    for family, counts in (
        (SUBMITS, tally.submits),
        (STARTS, tally.starts),
        (REQUEUES, tally.requeues),
        (CPU_S, tally.cpu_s),
        (GPU_S, tally.gpu_s),
        (NODE_S, tally.node_s),
    ):
        yield family, sorted(counts.items())
    yield ENDS, sorted(tally.ends.items())
    yield WAIT, by_name(tally.wait_s)
    yield RUN, sorted(tally.run_s.items(), key=lambda item: item[0])
    yield LIMIT, by_name(tally.limit_used)


def single_jobs(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return series of single jobs, as many as are enabled."""
    out = MetricBuilder()
    for job in _reading(picture).single:
        name = str(job.job_id)
        partition = ",".join(job.partitions)
        out.add(INFO, 1, name, job.user, job.account, partition, job.qos, job.name, job.state)
        ONE.add(out, [job], name)
    return out


def _reading(picture: Picture) -> JobsReading:
    if picture.jobs is None:
        raise ValueError("a chapter is only written if its sources have been read")
    return picture.jobs


def _states(
    out: MetricBuilder, family: Family, labels: tuple[str, ...], cells: Iterable[Cell], *also: str
) -> None:
    """Count jobs by state; 0 for these states if there is none."""
    counts = {**dict.fromkeys(also, 0), **counting.tasks(cells, lambda cell: cell.traits.state)}
    for state, count in counts.items():
        out.add(family, count, *labels, state)


def _amounts(
    out: MetricBuilder, families: Mapping[str, Family], name: str, cells: Iterable[Cell]
) -> None:
    group = list(cells)
    for resource, family in families.items():
        out.add(family, sum(getattr(cell, resource) for cell in group), name)


JOBS: Final = Chapter(
    name="jobs",
    sources=("jobs", "partitions"),
    families=(
        STATE, FLAG, HELD, PARTITION, ACCOUNT, USER, QOS,
        *ALLOCATED.values(), *REQUESTED.values(),
        *ACCOUNT_ALLOCATED.values(), *USER_ALLOCATED.values(), *QOS_ALLOCATED.values(),
    ),
    write=jobs_now,
)  # fmt: skip
WAITING: Final = Chapter(
    name="waiting",
    sources=("jobs", "partitions"),
    families=(PENDING, DEPENDENT, OLDEST, REASON_AGE, UNREAD),
    write=waiting,
)
COUNTERS: Final = Chapter(
    name="counters",
    sources=("jobs",),
    families=(SUBMITS, STARTS, REQUEUES, ENDS, WAIT, RUN, LIMIT, CPU_S, GPU_S, NODE_S),
    write=counters,
)
SINGLE: Final = Chapter(
    name="single jobs",
    sources=("jobs",),
    families=(INFO, *ONE.families),
    write=single_jobs,
)
