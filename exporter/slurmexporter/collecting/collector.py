"""Runs the schedules: each source has its own, so that a slow one does not hold up the others."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

from slurmclient import Client, SlurmError
from slurmclient.models import Statistics
from slurmexporter.collecting.efficiency import EfficiencyCollector
from slurmexporter.collecting.jobs import JobCollector
from slurmexporter.collecting.journal import Journal
from slurmexporter.collecting.latest import Latest
from slurmexporter.collecting.pace import Pace, adapt
from slurmexporter.collecting.sources import Read, Sources
from slurmexporter.settings import Settings

_LOG: Final = logging.getLogger(__name__)
_REASON_ROUND_S: Final = 1.0
_JITTER: Final = 0.05
"""Fraction of an interval by which a pause varies, so that sources do not poll in step."""
_LIST_S: Final = 120.0
"""How long a reading may take; listing all jobs of a large cluster takes many seconds."""
_NO_ANSWER: Final = frozenset({"unavailable", "lost_reply", "timeout"})
_ORDER: Final = ("controllers", "partitions", "scheduler", "nodes", "jobs")
"""The sources that the first reading starts with."""


class Collector:
    """Keeps the latest readings up to date."""

    def __init__(
        self,
        slurm: Client,
        settings: Settings,
        *,
        journal: Journal,
        latest: Latest,
        on_news: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """on_news: awaited after each reading that differs from the last one; jitter: returns a number in [0, 1)."""
        self._settings = settings
        self._journal = journal
        self._latest = latest
        self._on_news = on_news
        self._clock = clock
        self._jitter = jitter
        self.pace = Pace()
        self._sources = Sources(slurm, settings, journal)
        self._jobs = JobCollector(slurm, settings, journal)
        self._reads: dict[str, Read] = {
            "jobs": lambda: self._jobs.read(pace=self.pace.factor),
            **self._sources.all(),
        }
        if settings.has_efficiency:
            tally = self._jobs.table.tally
            top = settings.limits.top_accounts
            self._reads["efficiency"] = EfficiencyCollector(slurm, tally, top_accounts=top).read

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources."""
        return tuple(self._reads)

    async def read_once(self) -> None:
        """Read every source once, one after the other."""
        rest = [source for source in self._reads if source not in _ORDER]
        for source in (*_ORDER, *rest):
            await self._collect(source)
        await self._on_news()

    async def run(self) -> None:
        """Read all sources on their schedules, forever."""
        async with asyncio.TaskGroup() as group:
            for source in self._reads:
                group.create_task(self._repeat(source))
            if self._settings.reason_rate > 0:
                group.create_task(self._repeat_reasons())

    async def _repeat(self, source: str) -> None:
        while True:
            began_s = self._clock()
            if await self._collect(source):
                await self._on_news()
            every_s = self.every_s(source) * (1 + _JITTER * (self._jitter() - 0.5))
            await asyncio.sleep(max(0.0, every_s - (self._clock() - began_s)))

    def every_s(self, source: str) -> float:
        """Return the time from the beginning of one reading of a source to the next."""
        pause_s = self._jobs.pause_s if source == "jobs" else self._sources.pause_s(source)
        return max(self._settings.every_s(source) * self.pace.factor, pause_s)

    async def _repeat_reasons(self) -> None:
        while True:
            began_s = self._clock()
            if self._latest.is_fresh("jobs"):
                await self._guard("reasons", self._read_reasons)
            pause_s = _REASON_ROUND_S * self.pace.factor
            await asyncio.sleep(max(0.0, pause_s - (self._clock() - began_s)))

    async def _collect(self, source: str) -> bool:
        """Read a source; return whether its reading differs from the last one."""
        began_s = self._clock()
        if not self._latest.is_fresh(source):
            self._sources.start_over(source)
        reading, is_read = await self._guard(source, self._reads[source])
        seconds = self._clock() - began_s
        if source == "scheduler":
            self._adapt(reading, seconds, is_read=is_read)
        if source == "controllers":
            self._journal.is_slurmrestd_up = is_read
        if is_read:
            self._latest.put(source, reading, began_s=began_s)
        return reading is not None

    async def _guard(self, source: str, read: Read) -> tuple[object, bool]:
        """Read a source; its failures do not affect other sources."""
        began_s, outcome, error = self._clock(), "ok", ""
        reading: object = None
        try:
            async with asyncio.timeout(_LIST_S):
                reading = await read()
        except SlurmError as failure:
            outcome, error = failure.outcome, str(failure)
        except TimeoutError:
            outcome, error = "timeout", f"the reading took more than {_LIST_S:g} s"
        except Exception as failure:  # noqa: BLE001  # a defect in one source must cost that source only
            _LOG.exception("reading %s failed", source)
            outcome, error = "crash", repr(failure)
        if error and self._journal.last_error.get(source) != error:
            _LOG.warning("reading %s failed: %s", source, error)
        self._journal.count_reading(source, self._clock() - began_s, outcome, error)
        return reading, outcome == "ok"

    def _adapt(self, reading: object, seconds: float, *, is_read: bool) -> None:
        self._journal.is_slurmctld_up = is_read
        is_refused = not is_read and self._journal.last_outcome["scheduler"] not in _NO_ANSWER
        threads = reading.server_thread_count if isinstance(reading, Statistics) else 0
        before = self.pace.factor
        most = self._settings.max_backoff
        took_s = seconds if is_read or is_refused else None
        self.pace = adapt(self.pace, seconds=took_s, threads=threads, most=most)
        if self.pace.factor != before:
            _LOG.info("polling at %g times the interval: %s", self.pace.factor, self.pace.reason)

    async def _read_reasons(self) -> None:
        factor = self.pace.factor
        await self._jobs.read_reasons(_REASON_ROUND_S * factor, pace=factor)
