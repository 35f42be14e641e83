"""The table of jobs: which jobs to read again, and which events follow from a reading.

Each run of a job is credited with the seconds that it has held its resources. The time before a
job's first reading is credited only if the job is newer than the table.
"""

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from slurmclient.watching import states as slurm_states
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.job import Job, elapsed_s

States: TypeAlias = frozenset[str]
Entry: TypeAlias = States | Mapping[str, States]
"""The states of a job; of an array or heterogeneous job, those of its parts by their ids."""


class _Run(Struct):
    """A run of a job, and how much of it is credited."""

    start_s: float
    credited_s: float


class Changes(Struct, frozen=True):
    """The differences between the states and the table."""

    changed: tuple[str, ...]
    """Jobs that are new or whose state has changed, by base."""
    gone: tuple[str, ...]
    """Jobs that slurmctld no longer knows."""


class JobTable:
    """Jobs by base; each base has one record, or several for an array or heterogeneous job."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.skew_s = 0.0
        """How far slurmctld's clock is ahead of ours, at least."""
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
        """Return how all states, by id (`7`, `7_3` for a task, `7+1` for a component), differ from the table."""
        self._latest = latest = by_base(states)
        known = self._entries
        changed = tuple(base for base, entry in latest.items() if known.get(base) != entry)
        gone = tuple(base for base in self.rows if base not in latest)
        return Changes(changed, gone)

    def distrust(self) -> None:
        """Have all jobs read again: slurmctld has restarted, and ids may belong to other jobs now."""
        self._entries.clear()

    def bases(self) -> Collection[str]:
        """Return the bases in the latest states."""
        return self._latest.keys()

    def expected(self, base: str) -> Entry | None:
        """Return the latest states of a base; call it before reading the base."""
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
        """Take a reading of all records of a base, and count its events; without records the job no longer exists.

        Args:
            expected: What `expected` returned before the reading began: if the states have changed
                since, the job is read again.
            began_s: When it began, seconds since 1970; a reading older than the last is ignored.
            is_first: Whether the job is older than the table: its earlier events are not counted.
        """
        if began_s < self._read_at.get(base, began_s):
            return
        if not jobs:
            self.drop(base)
            return
        jobs = _with_tasks(jobs, expected)
        before = {row.key: row for row in self.rows.get(base, ())}
        if any(job.key in before and before[job.key].identity != job.identity for job in jobs):
            self.drop(base)
            before = {}
        for job in jobs:
            if not is_first:
                self.tally.count(before.get(job.key), job, is_new_base=not before)
            self._credit(job, began_s, is_first=is_first)
        for key in before.keys() - {job.key for job in jobs}:
            self._runs.pop((base, key), None)
        self.rows[base] = tuple(jobs)
        self._read_at[base] = began_s
        if expected is not None:
            self._entries[base] = expected

    def drop(self, base: str) -> None:
        """Forget a base; jobs that had not ended count as lost."""
        for row in self.rows.pop(base, ()):
            run = self._runs.pop((base, row.key), None)
            self.tally.lose(row, run.credited_s if run else 0.0)
        self._entries.pop(base, None)
        self._read_at.pop(base, None)

    def credit_running(self, now_s: float) -> None:
        """Credit all running jobs with what they have held up to a time."""
        for rows in self.rows.values():
            for job in rows:
                if job.state == "RUNNING":
                    self._credit(job, now_s, is_first=False)

    def waiting(self) -> Sequence[str]:
        """Return the bases of pending jobs."""
        return [base for base, rows in self.rows.items() if rows[0].state == "PENDING"]

    def waiting_unread(self, most: int, *, since_s: float) -> Sequence[str]:
        """Return the pending jobs that were not read since a time (seconds since 1970), the stalest first."""
        old = (base for base in self.waiting() if self._read_at[base] <= since_s)
        return heapq.nsmallest(most, old, key=self._read_at.__getitem__)

    def reason_age_s(self, now_s: float) -> float:
        """Return the age of the stalest reading of a pending job."""
        reads = map(self._read_at.__getitem__, self.waiting())
        return max(0.0, now_s - min(reads, default=now_s))

    def _credit(self, job: Job, now_s: float, *, is_first: bool) -> None:
        if not job.has_started:
            return
        # Slurm truncates times to seconds: a job that runs now cannot end before this second.
        ran_s = elapsed_s(job, math.floor(now_s + self.skew_s))
        run = self._runs.get((job.base, job.key))
        if run is None or run.start_s != job.start_s:
            run = self._runs[job.base, job.key] = _Run(job.start_s, ran_s if is_first else 0.0)
        if ran_s > run.credited_s:
            self.tally.credit(job, ran_s - run.credited_s)
            run.credited_s = ran_s


def by_base(states: Mapping[str, States]) -> dict[str, Entry]:
    """Group states by the array or heterogeneous job that they belong to."""
    entries: dict[str, Entry] = {}
    parts: dict[str, dict[str, States]] = {}
    for job_id, state in states.items():
        if job_id.isdecimal():  # most jobs: thousands per reading
            entries[job_id] = state
        else:
            parts.setdefault(_base(job_id), {})[job_id] = state
    for base, several in parts.items():
        alone = entries.get(base)
        if isinstance(alone, frozenset):
            several[base] = alone
        entries[base] = several
    return entries


def _base(job_id: str) -> str:
    leader, plus, offset = job_id.partition("+")
    if plus and slurm_states.is_number(offset) and slurm_states.is_number(leader):
        return str(int(leader) - int(offset))  # 6+1 is job 6, a component of 5
    return leader.partition("_")[0]


def _with_tasks(jobs: Sequence[Job], entry: Entry | None) -> Sequence[Job]:
    """Set the number of pending tasks of an array if its record does not have it."""
    if all(job.tasks for job in jobs):
        return jobs
    entries = len(entry) if isinstance(entry, Mapping) else 0
    rest = max(1, entries - sum(1 for job in jobs if job.key))
    return [job if job.tasks else replace(job, tasks=rest) for job in jobs]
