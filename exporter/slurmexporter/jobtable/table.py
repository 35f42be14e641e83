"""The table of jobs: which are to be read again, and what follows from each reading.

Each job's runs are credited with the seconds that they have held their resources. What a job had run
before it was read for the first time is credited only if the job is newer than the table.
"""

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from slurmexporter.jobtable.happenings import happened, lost
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.job import Job, elapsed_s

States: TypeAlias = frozenset[str]
Entry: TypeAlias = States | Mapping[str, States]
"""The states of a job; of an array or heterogeneous job, those of its parts by their ids."""


class _Run(Struct):
    """A run of a job, and how much of it has been credited."""

    start_s: float
    credited_s: float


class Changes(Struct, frozen=True):
    """What a reading of all states shows."""

    changed: tuple[str, ...]
    """Jobs that are new or whose state has changed, by base."""
    gone: tuple[str, ...]
    """Jobs that slurmctld does not know any more."""


class JobTable:
    """Jobs by base; each base has one record, or several for an array or heterogeneous job."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.skew_s = 0.0
        """How much slurmctld's clock is ahead of ours, at least."""
        self.rows: dict[str, tuple[Job, ...]] = {}
        self._runs: dict[tuple[str, str], _Run] = {}
        self._entries: dict[str, Entry] = {}
        """The states with which each base was last read."""
        self._latest: dict[str, Entry] = {}
        self._read_at: dict[str, float] = {}

    def jobs(self) -> Iterator[Job]:
        """Yield all records."""
        for rows in self.rows.values():
            yield from rows

    def compare(self, states: Mapping[str, States]) -> Changes:
        """Take the states of all jobs, and return what they show.

        Args:
            states: States by id: `7`, `7_3` for a task, `7+1` for a component.
        """
        self._latest = latest = by_base(states)
        known = self._entries
        changed = tuple(base for base, entry in latest.items() if known.get(base) != entry)
        gone = tuple(base for base in self.rows if base not in latest)
        return Changes(changed, gone)

    def distrust(self) -> None:
        """Have all jobs read again: slurmctld has restarted, and ids may be other jobs' now."""
        self._entries.clear()

    def bases(self) -> Collection[str]:
        """Return the bases that slurmctld has now."""
        return self._latest.keys()

    def expected(self, base: str) -> Entry | None:
        """Return the latest states of a base, to be remembered before it is read."""
        return self._latest.get(base)

    def take(
        self,
        base: str,
        jobs: Sequence[Job],
        *,
        expected: Entry | None,
        began_s: float,
        is_first: bool = False,
    ) -> None:
        """Take a reading of all records of a base, and count what has happened.

        Args:
            base: The id of the job, array or heterogeneous job.
            jobs: Its records; none if there is no such job any more.
            expected: What `expected` returned before the reading began: if the states have changed
                since, the job is read again.
            began_s: When the reading began, seconds since 1970; one that is older than the last is
                ignored.
            is_first: Whether the job was there before the table: what happened earlier is not
                counted.
        """
        if began_s < self._read_at.get(base, began_s):
            return
        if not jobs:
            self.drop(base)
            return
        jobs = _with_tasks(jobs, expected)
        before = {row.key: row for row in self.rows.get(base, ())}
        if any(_is_another(before.get(job.key), job) for job in jobs):
            self.drop(base)
            before = {}
        for job in jobs:
            if not is_first:
                self._count(before.get(job.key), job, is_new_base=not before)
            self._credit(job, began_s, is_first=is_first)
        for key in before.keys() - {job.key for job in jobs}:
            self._runs.pop((base, key), None)
        self.rows[base] = tuple(jobs)
        self._read_at[base] = began_s
        if expected is not None:
            self._entries[base] = expected

    def drop(self, base: str) -> None:
        """Forget a base; what had not ended is counted as lost."""
        for row in self.rows.pop(base, ()):
            run = self._runs.pop((base, row.key), None)
            for happening in lost(row, run.credited_s if run else 0.0):
                self.tally.add(happening)
        self._entries.pop(base, None)
        self._read_at.pop(base, None)

    def credit_running(self, now_s: float) -> None:
        """Credit all jobs that ran at a moment with what they have held until then."""
        for rows in self.rows.values():
            for job in rows:
                if job.state == "RUNNING":
                    self._credit(job, now_s, is_first=False)

    def waiting(self) -> Sequence[str]:
        """Return the waiting jobs by base."""
        return [base for base, rows in self.rows.items() if rows[0].state == "PENDING"]

    def waiting_unread(self, most: int, *, since_s: float) -> Sequence[str]:
        """Return the waiting jobs that were not read since, those first that were read longest ago.

        Args:
            most: How many.
            since_s: Seconds since 1970.
        """
        old = (base for base in self.waiting() if self._read_at[base] <= since_s)
        return heapq.nsmallest(most, old, key=self._read_at.__getitem__)

    def reason_age_s(self, now_s: float) -> float:
        """Return how long ago the waiting job that was read longest ago was read."""
        reads = map(self._read_at.__getitem__, self.waiting())
        return max(0.0, now_s - min(reads, default=now_s))

    def _count(self, old: Job | None, job: Job, *, is_new_base: bool) -> None:
        for happening in happened(old, job, is_new_base=is_new_base):
            self.tally.add(happening)

    def _credit(self, job: Job, now_s: float, *, is_first: bool) -> None:
        if not job.has_started:
            return
        # Slurm cuts moments to seconds: a job that runs now will not have ended before this one.
        ran_s = elapsed_s(job, math.floor(now_s + self.skew_s))
        run = self._runs.get((job.base, job.key))
        if run is None or run.start_s != job.start_s:
            run = self._runs[job.base, job.key] = _Run(job.start_s, ran_s if is_first else 0.0)
        if ran_s > run.credited_s:
            self.tally.credit(job, ran_s - run.credited_s)
            run.credited_s = ran_s


def by_base(states: Mapping[str, States]) -> dict[str, Entry]:
    """Group states by the array or heterogeneous job that they belong to."""
    found: dict[str, Entry] = {}
    parts: dict[str, dict[str, States]] = {}
    for job_id, state in states.items():
        if job_id.isdecimal():  # most jobs: thousands a reading
            found[job_id] = state
        else:
            parts.setdefault(_base(job_id), {})[job_id] = state
    for base, several in parts.items():
        alone = found.get(base)
        if isinstance(alone, frozenset):
            several[base] = alone
        found[base] = several
    return found


def _base(job_id: str) -> str:
    leader, plus, offset = job_id.partition("+")
    if plus and offset.isdecimal() and leader.isdecimal():
        return str(int(leader) - int(offset))  # 6+1 is job 6, a component of 5
    return leader.partition("_")[0]


def _is_another(old: Job | None, new: Job) -> bool:
    return old is not None and old.identity != new.identity


def _with_tasks(jobs: Sequence[Job], entry: Entry | None) -> Sequence[Job]:
    """Give the waiting tasks of an array their number where their record does not say it."""
    if all(job.tasks for job in jobs):
        return jobs
    entries = len(entry) if isinstance(entry, Mapping) else 0
    rest = max(1, entries - sum(1 for job in jobs if job.key))
    return [job if job.tasks else replace(job, tasks=rest) for job in jobs]
