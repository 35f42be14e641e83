"""Jobs of the soak of slurm-operator, and what must become of them: pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

LIVE = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED")
"""States of a job that has not ended, or of an earlier attempt of one."""


@dataclass(slots=True)
class NativeJob:
    """A batch job of a history."""

    id: str
    seconds: float
    code: int
    """Its exit code."""
    is_cancelled: bool = False
    """A person has cancelled it."""
    is_excused: bool = False
    """Its worker really died while it ran there: the history killed its container or its node."""
    ended: Sequence[tuple[str, str]] = ()
    """How it ended, if slurmctld was killed before it had saved that, and took it for running afterwards."""

    @property
    def script(self) -> str:
        """What it runs."""
        return f"sleep {self.seconds:.1f}; exit {self.code}"


def accounted(text: str) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return states and exit codes of all attempts of each job.

    text: of `sacct --duplicates --parsable2 --format=jobid,state,exitcode`.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for line in text.splitlines():
        job, state, code = line.split("|")
        found.setdefault(job, []).append((state.split()[0], code))
    return found


def forgotten(
    jobs: Collection[NativeJob],
    attempts: Mapping[str, Sequence[tuple[str, str]]],
    running: Collection[str],
) -> list[NativeJob]:
    """Return the jobs that have ended, and run if slurmctld is asked: it was killed in between.

    It would miss them when their worker registers again, which may take half an hour.
    """
    ended = {job.id for job in jobs if not job.ended} - {j.id for j in open_ones(jobs, attempts)}
    return [job for job in jobs if job.id in ended and job.id in running]


def open_ones(
    jobs: Collection[NativeJob], attempts: Mapping[str, Sequence[tuple[str, str]]]
) -> list[NativeJob]:
    """Return the jobs whose last attempt has not ended."""
    return [job for job in jobs if attempts.get(job.id, [("PENDING", "")])[-1][0] in LIVE]


def breaches(
    jobs: Collection[NativeJob], attempts: Mapping[str, Sequence[tuple[str, str]]]
) -> Iterator[str]:
    """Yield which jobs ended otherwise than by themselves, by a person, or with their worker."""
    for job in jobs:
        rows = list(job.ended) or attempts.get(job.id, [])
        if not rows:
            yield f"job {job.id}: sacct does not have it"
        elif not job.is_excused and (len(rows) > 1 or rows[0] not in _right(job)):
            yield f"job {job.id} ({job.script}): ended as {rows}, and its worker lived"


def _right(job: NativeJob) -> Collection[tuple[str, str]]:
    own = ("FAILED", f"{job.code}:0") if job.code else ("COMPLETED", "0:0")
    if not job.is_cancelled:
        return (own,)
    return (own, ("CANCELLED", "0:0"), ("CANCELLED", "0:15"))
