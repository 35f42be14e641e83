"""Poll Slurm for the leader, one reading at a time, shared by all readers.

A reading is one call of `/jobs/state/`, plus one GET for each job that is new or has changed. Before each
reading, every `Reader` states what it needs from it and when the next one is due; the earliest counts. In
most processes there is one reader. A process that leads for both extender and controllers has two, and
reads Slurm once for both; their memories stay separate.

- The pause after a slow reading is twice its duration, within limits: few jobs cost Slurm little, and a reading of them
  is slow because it waits for others. There is no such pause while there are many jobs to classify.
- While Slurm cannot be read, requests for an early reading have no effect.
"""

import asyncio
from collections import Counter
from datetime import datetime

import structlog

from bridge.domain.lifecycle import reasons
from bridge.domain.model.jobs import JobPhase
from bridge.domain.observation import clocks
from bridge.reconcile.reading.audience import Reader, combine
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from slurmclient.errors import SlurmError, Unauthorized
from slurmclient.watching.listing import AT_ONCE
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause
from slurmruntime.process.metrics import Metrics

_log = structlog.get_logger(__name__)

_LONGEST_PAUSE_S = 5.0
"""Longest pause after a slow reading; it may have been slow only once."""
_LONGEST_PAUSE_OF_FEW_S = 0.5
"""The same if slurm-client reads the whole list at once, as that costs slurmrestd little. A Slurm user can hold up
slurmctld for a second, again and again, with long lists of nodes; pods that had been allocated waited up to seven seconds
for the next reading."""

_STALE_AFTER_S = 15.0
"""Without a successful reading for this long the leader is not ready. A slow response or a restart
of Slurm stays below it.
"""


class Readings:
    """The readings of one term of leadership; created when it begins, dropped when it ends."""

    def __init__(self, discovery: Discovery, *, clock: Clock, metrics: Metrics) -> None:
        self.discovery = discovery
        """Reads Slurm, and remembers which jobs are ours."""
        self._clock = clock
        self._metrics = metrics
        self._readers: list[Reader] = []
        self._is_running = False
        self._event = asyncio.Event()
        """Set when the next reading may have become due earlier."""
        self.snapshot: Snapshot | None = None
        """The last successful reading; None before the first."""
        self._read_at = clock.monotonic()
        self._trouble = ""
        self._is_clock_off = False
        metrics.slurm.watch_snapshot_age(self._age_s)
        metrics.slurm.watch_clock(self._skew_s)

    def serve(self, reader: Reader) -> None:
        """Add a reader."""
        self._readers.append(reader)

    def notify(self) -> None:
        """Note that a reader's next reading may have become due earlier."""
        self._event.set()

    def now(self) -> datetime:
        """Return the time to decide by: Slurm's, if this machine's clock differs from it."""
        clock = self._clock
        return clocks.trusted(clock.now(), clock.monotonic(), self.discovery.slurms_time)

    def health(self) -> str | None:
        """Return what is wrong with our view of Slurm; None if nothing is."""
        if self._age_s() < _STALE_AFTER_S:
            return None
        return f"no news of Slurm for {self._age_s():.0f} s: {self._trouble or 'no reading yet'}"

    async def run(self, stop: asyncio.Event) -> None:
        """Read Slurm repeatedly until `stop` is set; only the first of several calls reads, for all."""
        if self._is_running:
            await stop.wait()
            return
        self._is_running = True
        try:
            await liveness.run("placeholders", self._read_forever(), stop)
        finally:
            self._is_running = False

    async def _read_forever(self) -> None:
        while True:
            began = self._clock.monotonic()
            await self._read()
            await self._pause(took_s=self._clock.monotonic() - began)

    async def _read(self) -> None:
        wants = combine([reader.wants() for reader in self._readers])
        try:
            snapshot = await self.discovery.refresh(
                reasons_for=wants.due, surely=wants.surely, complete=wants.complete
            )
        except SlurmError as error:
            self._failed(error)
            return
        if self._trouble:
            _log.info("slurm.reachable_again", after_s=round(self._age_s(), 1))
        self._trouble, self._read_at = "", self._clock.monotonic()
        self._compare_clocks()
        before, self.snapshot = self.snapshot, snapshot
        for reader in self._readers:
            reader.read(snapshot)
        self._count(before, snapshot)

    def _count(self, before: Snapshot | None, snapshot: Snapshot) -> None:
        if before is not None and before.jobs is snapshot.jobs:
            return
        phases = Counter(job.phase for job in snapshot.jobs.values())
        self._metrics.placeholders.count({phase.value: phases[phase] for phase in JobPhase})
        waiting = (job for job in snapshot.jobs.values() if job.phase is JobPhase.WAITING)
        self._metrics.placeholders.waiting(
            Counter(reasons.condition_reason(job.reason) for job in waiting)
        )

    def _failed(self, error: SlurmError) -> None:
        for reader in self._readers:
            reader.failed()
        advice = ": renew the token in slurm.token_file" if isinstance(error, Unauthorized) else ""
        trouble = f"{error}{advice}"
        if trouble != self._trouble:
            _log.warning("slurm.unreadable", error=trouble)
        self._trouble = trouble

    async def _pause(self, *, took_s: float) -> None:
        paces = [reader.pace for reader in self._readers]
        shortest_s = min(pace.shortest_s for pace in paces)
        if self._trouble:
            await self._rest(min(pace.idle_s for pace in paces))
            return
        if self.snapshot is not None and self.snapshot.is_behind:
            await self._rest(shortest_s)
            return
        since = self._clock.monotonic()
        await self._rest(self._at_least_s(shortest_s, took_s))
        while (left_s := self._due_at(since, took_s) - self._clock.monotonic()) > 0:
            self._event.clear()
            liveness.turned(left_s)
            await pause(left_s, self._event)

    async def _rest(self, seconds: float) -> None:
        liveness.turned(seconds)
        await self._clock.sleep(seconds)

    def _due_at(self, since: float, took_s: float) -> float:
        """Return when the next reading is due: no reader's request counts before its shortest pause is over."""
        earliest = (
            since + self._at_least_s(reader.pace.shortest_s, took_s) for reader in self._readers
        )
        return min(
            at if reader.is_asked else max(at, reader.due_at(since))
            for at, reader in zip(earliest, self._readers, strict=True)
        )

    def _compare_clocks(self) -> None:
        skew_s = self._skew_s()
        before, self._is_clock_off = self._is_clock_off, abs(skew_s) > clocks.AGREE_S
        if self._is_clock_off and not before:
            _log.error("clock.differs", skew_s=round(skew_s), decides_by="slurmctld's clock")
        elif before and not self._is_clock_off:
            _log.info("clock.agrees")

    def _skew_s(self) -> float:
        """Return slurmctld's clock minus this machine's; 0 if it is not known."""
        reference = self.discovery.slurms_time
        if reference is None:
            return 0.0
        return reference.skew_s(self._clock.now(), self._clock.monotonic())

    def _age_s(self) -> float:
        return self._clock.monotonic() - self._read_at

    def _at_least_s(self, shortest_s: float, took_s: float) -> float:
        are_few = self.discovery.listed_jobs <= AT_ONCE
        longest_s = _LONGEST_PAUSE_OF_FEW_S if are_few else _LONGEST_PAUSE_S
        return max(shortest_s, min(2 * took_s, longest_s))
