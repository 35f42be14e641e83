"""Jobs of the soak of slurm-operator, and what must become of them: pure."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

LIVE = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED")
"""States of a job that has not ended, or of an earlier attempt of one."""


_ROUNDED_S = 1.0
"""sacct's times are whole seconds."""
_MISSED_AFTER_S = 60.0
"""slurmctld had time enough to miss a job by itself."""
SHAPE = "JobID,State,ExitCode,NodeList,Start,End"
"""What `accounted` wants of sacct, with times in seconds since 1970."""


class Attempt(NamedTuple):
    """One run of a job, as sacct has it."""

    state: str
    code: str
    node: str = ""
    start_s: float = math.inf
    """Seconds since 1970; never, if it has not begun."""
    end_s: float = math.inf


Attempts: TypeAlias = Mapping[str, Sequence[Attempt]]
"""All runs of each job, in order."""


_WAITS = Attempt("PENDING", "")


@dataclass(slots=True)
class Death:
    """A worker that the history has killed; times are in seconds since 1970."""

    worker: str
    from_s: float
    until_s: float = math.inf
    """When it was seen to be back."""


@dataclass(slots=True)
class NativeJob:
    """A batch job of a history."""

    id: str
    seconds: float
    code: int
    """Its exit code."""
    is_cancelled: bool = False
    """A person has cancelled it."""
    ended: Sequence[Attempt] = ()
    """How it ended, if slurmctld was killed before it had saved that, and took it for running afterwards."""

    @property
    def script(self) -> str:
        """What it runs."""
        return f"sleep {self.seconds:.1f}; exit {self.code}"


def accounted(text: str) -> Attempts:
    """Return all runs of each job.

    text: of `sacct --duplicates --parsable2` with `SHAPE`.
    """
    found: dict[str, list[Attempt]] = {}
    for line in text.splitlines():
        job, state, code, node, start, end = line.split("|")
        found.setdefault(job, []).append(
            Attempt(state.split()[0], code, node, _seconds(start), _seconds(end))
        )
    return found


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else math.inf


def forgotten(
    jobs: Collection[NativeJob],
    attempts: Attempts,
    running: Collection[str],
) -> list[NativeJob]:
    """Return the jobs that have ended, and run if slurmctld is asked: it was killed in between.

    It would miss them when their worker registers again, which may take half an hour.
    """
    ended = {job.id for job in jobs if not job.ended} - {j.id for j in open_ones(jobs, attempts)}
    return [job for job in jobs if job.id in ended and job.id in running]


def unmissed(
    jobs: Collection[NativeJob], attempts: Attempts, deaths: Collection[Death], now_s: float
) -> list[NativeJob]:
    """Return the jobs that died with their worker, and that slurmctld takes for running long after that is back.

    It misses none within BatchStartTimeout and ten seconds after its own start or the job's last sign of life, and looks again
    at the worker's next registration. So it is if slurmctld was killed, too, or another pod took the worker's place at once.
    """
    return [
        job
        for job in open_ones(jobs, attempts)
        for death in deaths
        if any(_died(run, death) for run in attempts.get(job.id, ())[-1:])
        and death.until_s + _MISSED_AFTER_S < now_s
    ]


def _died(run: Attempt, death: Death) -> bool:
    return run.state == "RUNNING" and run.node == death.worker and run.start_s < death.from_s


def open_ones(jobs: Collection[NativeJob], attempts: Attempts) -> list[NativeJob]:
    """Return the jobs whose last attempt has not ended."""
    return [job for job in jobs if attempts.get(job.id, [_WAITS])[-1].state in LIVE]


def excused(
    jobs: Collection[NativeJob], attempts: Attempts, deaths: Collection[Death]
) -> list[NativeJob]:
    """Return the jobs that ran, or were to run, on a worker while that was dead."""
    return [
        job
        for job in jobs
        if any(_overlaps(run, death) for run in _runs(job, attempts) for death in deaths)
    ]


def _runs(job: NativeJob, attempts: Attempts) -> Sequence[Attempt]:
    return job.ended or attempts.get(job.id, ())


def _overlaps(run: Attempt, death: Death) -> bool:
    is_before = run.end_s < death.from_s - _ROUNDED_S
    return run.node == death.worker and not is_before and run.start_s <= death.until_s


def breaches(
    jobs: Collection[NativeJob], attempts: Attempts, deaths: Collection[Death]
) -> Iterator[str]:
    """Yield which jobs ended otherwise than by themselves, by a person, or with their worker."""
    lost = {job.id for job in excused(jobs, attempts, deaths)}
    for job in jobs:
        rows = _runs(job, attempts)
        if not rows:
            yield f"job {job.id}: sacct does not have it"
        elif job.id not in lost and (len(rows) > 1 or rows[0][:2] not in _right(job)):
            yield f"job {job.id} ({job.script}): ended as {rows}, and its worker lived"


def _right(job: NativeJob) -> Collection[tuple[str, str]]:
    own = ("FAILED", f"{job.code}:0") if job.code else ("COMPLETED", "0:0")
    if not job.is_cancelled:
        return (own,)
    return (own, ("CANCELLED", "0:0"), ("CANCELLED", "0:15"))
