"""Reading jobs: the states of all, then only the jobs whose state has changed, within a budget."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from slurmclient import Client, NotFound, SlurmError
from slurmexporter.collecting.journal import Journal
from slurmexporter.families.picture import JobsReading
from slurmexporter.jobtable.table import JobTable
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.cells import Cell, grouped
from slurmexporter.readings.job import Job, JobView, job_of
from slurmexporter.settings import Settings

_AT_A_TIME: Final = 2
"""Jobs to read concurrently; slurmrestd has threads for others."""
_FEW: Final = 50
_SHARE: Final = 4
"""More changed jobs than `_FEW` and a quarter of all are cheaper to list than to read singly."""
_STATES_PER_YIELD: Final = 500
"""Records to take before other tasks get their turn: a scrape must not wait for a long list."""
TOO_MANY: Final = "too_many_jobs"
FILLING: Final = "filling"
OVER_BUDGET: Final = "look_rate"


class TooManyJobs(Exception):
    """slurmctld has more jobs than the settings allow to keep."""


class JobCollector:
    """Keeps the table of jobs up to date."""

    def __init__(
        self,
        slurm: Client,
        settings: Settings,
        journal: Journal,
        *,
        wall: Callable[[], float] = time.time,  # noqa: TID251  # the default clock of a program
    ) -> None:
        """Start with an empty table.

        Args:
            slurm: An open client.
            settings: Say what may be asked.
            journal: Takes down what is odd and what is left out.
            wall: Returns seconds since 1970, as Slurm counts them.
        """
        self._slurm = slurm
        self._settings = settings
        self._journal = journal
        self._wall = wall
        self.table = JobTable(Tally(top_accounts=settings.limits.top_accounts))
        self._first: set[str] | None = None
        """Jobs that were there before the table and have not been read yet; None before the first
        reading.
        """
        self._started: datetime | None = None
        self._needs_list = True
        self._cells: Sequence[Cell] = ()
        self._is_changed = True

    async def read(self, *, pace: float) -> JobsReading:
        """Read the states of all jobs, and those jobs whose state has changed.

        Args:
            pace: The factor by which to ask less.

        Raises:
            SlurmError: If the states could not be read.
            TooManyJobs: If there are more than the settings allow.
        """
        at_s = self._wall()
        states = await self._slurm.jobs.states()
        too_many = len(states) > self._settings.states_max
        self._journal.degrade(TOO_MANY, holds=too_many)
        if too_many:
            raise TooManyJobs(
                f"slurmctld has {len(states)} jobs, and --states-max is {self._settings.states_max}"
            )
        await self._check_start()
        changes = self.table.compare(states)
        if self._first is None:
            self._first = set(changes.changed)
        else:
            self._first.intersection_update(changes.changed)
        for base in changes.gone:
            self.table.drop(base)
            self._is_changed = True
        await self._look(changes.changed, len(states), pace)
        self.table.credit_running(at_s)
        left = len(self.table.compare(states).changed)
        self._journal.degrade(OVER_BUDGET, holds=left > _FEW and not self._first)
        self._journal.degrade(FILLING, holds=bool(self._first))
        return await self._reading(at_s, left)

    async def read_reasons(self, seconds: float, *, pace: float) -> None:
        """Read the waiting jobs that were read longest ago, as many as the budget allows.

        Args:
            seconds: The time that the budget is for.
            pace: The factor by which to ask less.

        Raises:
            SlurmError: If they could not be read.
        """
        rate = min(self._settings.reason_rate, self._settings.look_rate) / pace
        bases = self.table.least_recently_read(max(1, int(rate * seconds)))
        await self._look_at_each(bases)

    async def _check_start(self) -> None:
        """Distrust the table if slurmctld has restarted: ids may be other jobs' now."""
        started = (await self._slurm.diag()).req_time_start
        if self._started is not None and started != self._started:
            self.table.distrust()
            self._needs_list = True
        self._started = started

    async def _look(self, changed: Sequence[str], total: int, pace: float) -> None:
        many = len(changed) > max(_FEW, total // _SHARE)
        if (self._needs_list or many) and total <= self._settings.full_list_max and changed:
            await self._list_all()
        else:
            most = int(self._settings.look_rate * self._settings.interval_s / pace)
            await self._look_at_each(changed[: max(1, most)])
        self._needs_list = False

    async def _list_all(self) -> None:
        """List all jobs; the answer is decoded job by job while it arrives."""
        began_s = self._wall()
        expected = {base: self.table.expected(base) for base in self.table.bases()}
        found: dict[str, list[Job]] = {}
        count = 0
        async for view in self._slurm.jobs.iter(as_=JobView):
            job = job_of(view)
            found.setdefault(job.base, []).append(job)
            count += 1
            if count % _STATES_PER_YIELD == 0:
                await asyncio.sleep(0)
        for base, jobs in found.items():
            self._take(base, jobs, expected.get(base), began_s)
        self._first = set()

    async def _look_at_each(self, bases: Sequence[str]) -> None:
        waiting = iter(bases)

        async def look() -> None:
            for base in waiting:
                await self._look_at(base)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_A_TIME, len(bases))):
                    group.create_task(look())
        except ExceptionGroup as failures:  # one server, so the first failure explains the others
            raise failures.exceptions[0] from None

    async def _look_at(self, base: str) -> None:
        began_s, expected = self._wall(), self.table.expected(base)
        try:
            listed = await self._slurm.jobs.parts(base, as_=JobView)
        except NotFound:
            self._take(base, [], expected, began_s)
            return
        except SlurmError as error:
            if error.outcome not in {"malformed", "rejected"}:
                raise
            self._journal.odd["jobs"] += 1
            return
        self._journal.odd["jobs"] += len(listed.odd)
        if listed or not listed.odd:
            self._take(base, [job_of(view) for view in listed], expected, began_s)

    def _take(self, base: str, jobs: list[Job], expected: object, began_s: float) -> None:
        is_first = self._first is not None and base in self._first
        self.table.take(base, jobs, expected=expected, began_s=began_s, is_first=is_first)  # type: ignore[arg-type]  # from `expected`
        self._is_changed = True
        if self._first:
            self._first.discard(base)

    async def _reading(self, at_s: float, unread: int) -> JobsReading:
        if self._is_changed:
            self._is_changed = False
            self._cells = await asyncio.to_thread(grouped, tuple(self.table.jobs()))
        most = self._settings.job_info
        alive = (job for job in self.table.jobs() if not job.has_ended)
        return JobsReading(
            cells=self._cells,
            tally=self.table.tally.copy(),
            at_s=at_s,
            unread=unread,
            reason_age_s=self.table.reason_age_s(at_s),
            single=[job for job, _ in zip(alive, range(most), strict=False)] if most else (),
        )
