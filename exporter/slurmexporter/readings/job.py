"""Jobs: the fields to decode, and a record of Slurm's as a value."""

import math
import re
from typing import Final

from msgspec import Struct

from slurmclient import Model, Number
from slurmexporter.readings import tres
from slurmexporter.readings.states import ENDED, JOB_STATES, base_state

_MINUTE_S: Final = 60.0
_TASKS: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


class _Sluid(Struct, frozen=True, gc=False):
    sluid: str = ""


class JobView(Model, frozen=True):
    """The fields of `GET /job/{id}` and `GET /jobs/` that metrics use; times are seconds since 1970."""

    job_id: int
    array_job_id: Number = None
    array_task_id: Number = None
    array_task_string: str = ""
    het_job_id: Number = None
    step_id: _Sluid = _Sluid()
    name: str = ""
    account: str = ""
    user_name: str = ""
    user_id: int = 0
    partition: str = ""
    qos: str = ""
    job_state: frozenset[str] = frozenset()
    state_reason: str = ""
    dependency: str = ""
    hold: bool = False
    node_count: Number = None
    cpus: Number = None
    submit_time: Number = None
    eligible_time: Number = None
    start_time: Number = None
    end_time: Number = None
    suspend_time: Number = None
    pre_sus_time: Number = None
    time_limit: Number = None
    restart_cnt: int = 0
    tres_req_str: str = ""
    tres_alloc_str: str = ""


class Job(Struct, frozen=True):
    """One record: a job, a task of an array, its pending tasks together, a component of a heterogeneous job."""

    base: str
    """The id of the array or heterogeneous job, or else the job's own."""
    key: str
    """Tells the records of one base apart: a task's number, a component's id, "" for the rest."""
    identity: str
    """The sluid, or before v0.0.44 the time of submission: tells jobs with the same id apart."""
    job_id: int
    name: str
    account: str
    user: str
    user_id: int
    partitions: tuple[str, ...]
    """The partition it runs in; while pending, all that it may run in."""
    qos: str
    state: str
    flags: frozenset[str]
    reason: str
    """Why it is pending; "" if it is not."""
    is_held: bool
    has_dependency: bool
    cpus: float
    """Allocated or, while pending, requested; the same for the other resources."""
    gpus: float
    memory_bytes: float
    nodes: float
    submit_s: float
    eligible_s: float
    start_s: float
    """0 while it has not started."""
    end_s: float
    """0 while it has not ended."""
    suspended_s: float
    """When it was last suspended or resumed; 0 if never."""
    ran_before_s: float
    """Its run time up to then."""
    limit_s: float
    """Infinite without a limit."""
    restarts: int
    tasks: int = 1
    """0 if Slurm does not give their number."""

    @property
    def has_ended(self) -> bool:
        """Whether it is in a final state."""
        return self.state in ENDED

    @property
    def has_started(self) -> bool:
        """Whether it has ever started."""
        return self.start_s > 0

    @property
    def waits_since_s(self) -> float:
        """When it became eligible, or else when it was submitted."""
        return self.eligible_s or self.submit_s


def job_of(view: JobView) -> Job:
    """Return a record of Slurm's as a value; invalid numbers become 0."""
    state = base_state(view.job_state, JOB_STATES)
    is_waiting = state == "PENDING"
    start_s = 0.0 if is_waiting else _finite(view.start_time)
    end_s = _finite(view.end_time) if state in ENDED else 0.0
    held = tres.amounts(view.tres_req_str if is_waiting else view.tres_alloc_str)
    base = int(view.array_job_id or view.het_job_id or view.job_id)
    return Job(
        base=str(base),
        key=_key(view, base),
        identity=view.step_id.sluid or str(view.submit_time),
        job_id=view.job_id,
        name=view.name,
        account=view.account,
        user=view.user_name or str(view.user_id),
        user_id=view.user_id,
        partitions=tuple(filter(None, view.partition.split(","))),
        qos=view.qos,
        state=state,
        flags=view.job_state - {state},
        reason=view.state_reason if is_waiting else "",
        is_held=view.hold,
        has_dependency=bool(view.dependency),
        cpus=held.get("cpu", _finite(view.cpus) if is_waiting else 0.0),
        gpus=tres.gpus(held),
        memory_bytes=held.get("mem", 0.0),
        nodes=held.get("node", _finite(view.node_count)),
        submit_s=_finite(view.submit_time),
        eligible_s=_finite(view.eligible_time),
        # Slurm gives a job that was cancelled while pending a start time, too, but no resources.
        start_s=start_s if held else 0.0,
        end_s=end_s,
        suspended_s=_finite(view.suspend_time),
        ran_before_s=_finite(view.pre_sus_time),
        limit_s=math.inf if view.time_limit is None else view.time_limit * _MINUTE_S,
        restarts=view.restart_cnt,
        tasks=task_count(view.array_task_string) if view.array_task_string else 1,
    )


def elapsed_s(job: Job, now_s: float) -> float:
    """Return how long a job has run since its last start, up to a time (seconds since 1970), excluding suspension."""
    if not job.has_started:
        return 0.0
    if job.state == "SUSPENDED":
        return job.ran_before_s
    until_s = job.end_s or now_s
    if job.suspended_s:
        return max(0.0, job.ran_before_s + until_s - job.suspended_s)
    return max(0.0, until_s - job.start_s)


def task_count(text: str) -> int:
    """Return the number of tasks in a list such as `1-5,7,10-20:5%3`; 0 if it is truncated (`…,...`) or invalid."""
    count = 0
    for part in text.partition("%")[0].split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            return 0
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if not step or last < first:
            return 0
        count += (last - first) // step + 1
    return count


def _key(view: JobView, base: int) -> str:
    if view.array_task_id is not None:
        return str(view.array_task_id)
    return f"+{view.job_id - base}" if view.het_job_id else ""


def _finite(value: float | None) -> float:
    return 0.0 if value is None or not math.isfinite(value) else float(value)
