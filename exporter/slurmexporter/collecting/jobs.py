"""Read jobs: the states of all, then only the jobs whose state has changed, within a budget."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from slurmclient import Client, LostReply, NotFound, SlurmError
from slurmclient.watching.in_turn import in_turn
from slurmexporter.collecting.journal import Journal
from slurmexporter.families.picture import JobsReading
from slurmexporter.jobtable.table import Entry, JobTable
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.cells import Cell, group_jobs
from slurmexporter.readings.job import Job, JobView, job_of
from slurmexporter.settings import Settings

_AT_A_TIME: Final = 4
"""Jobs to read concurrently: cheaper for slurmrestd than one by one, and it keeps threads for others."""
_FEW: Final = 50
_SHARE: Final = 4
"""More changed jobs than `_FEW` and a quarter of all are cheaper to list than to read singly."""
_RECORDS_PER_YIELD: Final = 500
"""Records to take before yielding to other tasks: a scrape must not wait for a long list."""
_LIST_PAUSES: Final = 8.0
"""Pauses between lists, as multiples of how long a list takes."""
_STATE_S: Final = 5e-6
_TASKS_S: Final = 6e-9
_RECORD_S: Final = 5e-4
_LIST_S: Final = 0.03
_SINGLE_S: Final = 2e-3
"""Time that slurmrestd needs for the state of a job, for the tasks of an array squared, for a job in a
list, for a list, and for a job read singly; measured with 26.05.
"""
_LIST_TIMEOUT_S: Final = 60.0
"""How long slurmrestd may take for a list: about 5 s for 10 000 jobs, more on a busy machine."""
LARGE_ARRAYS: Final = "large_arrays"
FILLING: Final = "filling"
OVER_BUDGET: Final = "look_rate"


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
        """wall: returns seconds since 1970, as Slurm counts them."""
        self._slurm = slurm
        self._settings = settings
        self._journal = journal
        self._wall = wall
        self.table = JobTable(Tally(top_accounts=settings.limits.top_accounts))
        self._first: set[str] | None = None
        """Jobs older than the table that have not been read yet; None before the first reading."""
        self._started: datetime | None = None
        self._needs_list = True
        self._is_list_too_slow = False
        self._reasons_listed_s = -math.inf
        self._is_listing = False
        self._list_took_s = 0.0
        self._cells: Sequence[Cell] = ()
        self._is_changed = True

    @property
    def pause_s(self) -> float:
        """The shortest wait until the next reading: lists cost Slurm a lot."""
        return self._list_took_s * _LIST_PAUSES if self._is_listing else 0.0

    async def read(self, *, pace: float) -> JobsReading:
        """Read the states of all jobs, and the jobs whose state has changed; pace: the factor by which to poll less.

        If large arrays make the states more expensive than a list of all jobs, list all jobs instead.

        Raises:
            SlurmError: If they could not be read.
        """
        at_s = self._wall()
        self._is_listing = lists_instead(self.table.jobs())
        unread = 0
        if not self._is_listing:
            try:
                unread = await self._read_changed(pace)
            except LostReply as error:
                if error.operation != "slurm_get_jobs_state":
                    raise
                # A large array may just have been submitted. If slurmctld hangs, the list fails as well.
                self._is_listing = True
        if self._is_listing:
            await self._check_start()
            await self._list_all(without_states=True)
        self._journal.degrade(LARGE_ARRAYS, holds=self._is_listing)
        self._journal.degrade(OVER_BUDGET, holds=unread > _FEW and not self._first)
        self._journal.degrade(FILLING, holds=bool(self._first))
        self.table.credit_running(at_s)
        return await self._reading(at_s, unread)

    async def _read_changed(self, pace: float) -> int:
        """Read all states and the jobs whose state has changed; return how many remain to be read."""
        states = await self._slurm.jobs.states()
        await self._check_start()
        changes = self.table.compare(states)
        if self._first is None:
            self._first = set(changes.changed)
        else:
            self._first.intersection_update(changes.changed)
        for base in changes.gone:
            self.table.drop(base)
            self._is_changed = True
        await self._read_details(changes.changed, len(states), pace)
        return len(self.table.compare(states).changed)

    async def read_reasons(self, seconds: float, *, pace: float) -> None:
        """Read the pending jobs that were read longest ago, as many as the budget for these seconds allows.

        None is read twice within an interval, as that would not be shown. If a large share of the
        jobs is pending, one list costs a quarter of reading them singly. Then they are listed, as
        often as the budget would have read each of them once.

        Raises:
            SlurmError: If they could not be read.
        """
        if self._is_listing:
            return
        rate = min(self._settings.reason_rate, self._settings.look_rate) / pace
        waiting, now_s = self.table.waiting(), self._wall()
        every_s = self._settings.interval_s * pace
        if not self._lists_reasons(len(waiting)):
            most = max(1, int(rate * seconds))
            await self._read_singly(self.table.waiting_unread(most, since_s=now_s - every_s))
        else:
            pause_s = max(every_s, len(waiting) / rate)
            # A list that lacks a job, or fails, leaves the age as it was; do not repeat it at once.
            is_rested = now_s - self._reasons_listed_s >= pause_s
            if is_rested and self.table.reason_age_s(now_s) >= pause_s:
                await self._list_reasons(waiting)

    def _lists_reasons(self, waiting: int) -> bool:
        records = sum(1 for _ in self.table.jobs())
        may_list = records <= self._settings.full_list_max and not self._is_list_too_slow
        is_filled = self._first is not None and not self._first
        return may_list and is_filled and _LIST_S + records * _RECORD_S < waiting * _SINGLE_S

    async def _list_reasons(self, waiting: Sequence[str]) -> None:
        began_s = self._reasons_listed_s = self._wall()
        expected = {base: self.table.expected(base) for base in waiting}
        try:
            jobs_by_base = await self._list_jobs()
        except LostReply:
            self._is_list_too_slow = True
            raise
        for base in waiting:
            # A job that is gone by now must not come back and be counted again.
            if base in self.table.rows and base in jobs_by_base:
                self._take(base, jobs_by_base[base], expected[base], began_s)

    async def _check_start(self) -> None:
        """Distrust the table if slurmctld has restarted: its ids may belong to other jobs now."""
        statistics = await self._slurm.diag()
        started = statistics.req_time_start
        if statistics.req_time is not None:
            self.table.skew_s = statistics.req_time.timestamp() - self._wall()
        if self._started is not None and started != self._started:
            self.table.distrust()
            self._needs_list = True
        self._started = started

    async def _read_details(self, changed: Sequence[str], total: int, pace: float) -> None:
        many = len(changed) > max(_FEW, total // _SHARE)
        is_small = total <= self._settings.full_list_max and not self._is_list_too_slow
        if (self._needs_list or many) and is_small and changed:
            try:
                await self._list_all()
            except LostReply:
                # The next list would take as long: read the jobs one by one from now on.
                self._is_list_too_slow = True
                raise
        else:
            most = int(self._settings.look_rate * self._settings.interval_s / pace)
            await self._read_singly(changed[: max(1, most)])
        self._needs_list = False

    async def _list_all(self, *, without_states: bool = False) -> None:
        """List all jobs, and take their records; without_states: jobs that are missing from the list are gone."""
        began_s = self._wall()
        if without_states:
            self.table.compare({})
        expected = {base: self.table.expected(base) for base in self.table.bases()}
        jobs_by_base = await self._list_jobs()
        if without_states:
            if self._first is None:
                self._first = set(jobs_by_base)
            for base in self.table.rows.keys() - jobs_by_base.keys():
                self.table.drop(base)
                self._is_changed = True
        for base, jobs in jobs_by_base.items():
            self._take(base, jobs, expected.get(base), began_s)
        self._first = set()
        self._list_took_s = self._wall() - began_s

    async def _list_jobs(self) -> dict[str, list[Job]]:
        """List all jobs by base; the answer is decoded job by job while it arrives."""
        jobs_by_base: dict[str, list[Job]] = {}
        count = 0
        timeout_s = max(self._settings.timeout_s, _LIST_TIMEOUT_S)
        async for view in self._slurm.jobs.iter(as_=JobView, timeout_s=timeout_s):
            job = job_of(view)
            jobs_by_base.setdefault(job.base, []).append(job)
            count += 1
            if count % _RECORDS_PER_YIELD == 0:
                await asyncio.sleep(0)
        return jobs_by_base

    async def _read_singly(self, bases: Sequence[str]) -> None:
        await in_turn(bases, self._read_job, at_a_time=_AT_A_TIME)

    async def _read_job(self, base: str) -> None:
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

    def _take(self, base: str, jobs: list[Job], expected: Entry | None, began_s: float) -> None:
        is_first = self._first is not None and base in self._first
        self.table.take(base, jobs, expected=expected, began_s=began_s, is_first=is_first)
        self._is_changed = True
        if self._first:
            self._first.discard(base)

    async def _reading(self, at_s: float, unread: int) -> JobsReading:
        if self._is_changed:
            self._is_changed = False
            self._cells = await asyncio.to_thread(group_jobs, tuple(self.table.jobs()))
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


def lists_instead(jobs: Iterable[Job]) -> bool:
    """Return whether listing all jobs costs slurmrestd less than reading their states.

    `/jobs/state` has an entry for every pending task of an array, and its time grows with the square
    of their number: 0.6 s for 10 000 tasks, a minute for 100 000.
    """
    records = squares = 0
    for job in jobs:
        records += 1
        squares += job.tasks * job.tasks if job.tasks > 1 else 0
    return records * _STATE_S + squares * _TASKS_S > _LIST_S + records * _RECORD_S
