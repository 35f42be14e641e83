"""A leader's view of our placeholders in Slurm, kept up to date on a budget.

One reading serves all waiters: `/jobs/state/` as a whole, plus one GET for each job that is new or
has changed. The budget limits four things:

- Readings follow each other at the busy or the idle interval; while jobs wait and nothing happens,
  the interval grows from the one to the other.
- The pause after a slow reading is twice its duration, within limits; not while it is slow because
  there are many jobs to classify.
- A write or a question requests an early reading.
- The *reasons* why Slurm lets jobs wait, which no list contains, are read round robin, a few a
  second, however many jobs wait; so are the limits of running jobs.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import structlog

from bridge.domain.ids import JobId, PodUid, WorkloadKey
from bridge.domain.lifecycle import reasons
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation import clocks
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.turns import Round, Turns
from bridge.domain.observation.view import Book, Concerns, Past, View
from bridge.process import liveness
from bridge.process.clock import Clock, pause
from bridge.process.metrics import Metrics
from bridge.slurm.discovery import Discovery
from bridge.slurm.errors import SlurmError, Unauthorized
from bridge.slurm.snapshot import Snapshot

_log = structlog.get_logger(__name__)

_LONGEST_PAUSE_S = 5.0
"""Longest pause after a slow reading; it may have been slow only once."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What a reading is wanted for."""

    due: tuple[JobId, ...] = ()
    """Jobs to read although their state is unchanged."""
    surely: bool = False
    """Conclusions will be drawn from it."""
    whole: bool = False
    """They will be drawn from what is absent."""


_STALE_AFTER_S = 15.0
"""Without a successful reading for this long the leader is not ready. A slow response or a restart
of Slurm stays below it.
"""


class Audience(Protocol):
    """Who else lives from the same readings, for jobs of the other kind."""

    def wants(self) -> Wants:
        """Return what the reading that begins now is wanted for; called once for each."""

    def read(self, snapshot: Snapshot) -> None:
        """Take in a successful reading."""

    def failed(self) -> None:
        """Take in a failed one."""


class Placeholders:
    """One leader's view of Slurm; created when leadership begins, dropped when it ends."""

    def __init__(
        self,
        discovery: Discovery,
        *,
        pace: Pace,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._discovery = discovery
        self._pace = pace
        self._clock = clock
        self._metrics = metrics
        self._book = Book(quiet_s=pace.quiet_s)
        self._snapshot: Snapshot | None = None
        self._read_at = clock.monotonic()
        self._trouble = ""
        self._stirred_at = clock.monotonic()
        """When something last happened that may let jobs start."""
        self._phases: Counter[JobPhase] = Counter()
        self._ours_stirred_at = self._stirred_at
        """When something of ours last happened."""
        self._bell = asyncio.Event()
        """Set when the next reading may have become due earlier."""
        self._is_asked = False
        """True if the next reading is wanted as soon as possible."""
        self._waiting_for_news: set[WorkloadKey] = set()
        self._seeks_absence = False
        """True if someone needs to know that something is absent."""
        self._is_questioned = False
        """True if someone waited for the last reading: an answer may take two in a row."""
        self._reasons = Turns(first_per_s=pace.first_reasons_per_s, after_s=pace.reasons_after_s)
        self._limits = Round()
        self._is_clock_off = False
        self._audience: Audience | None = None
        metrics.slurm.watch_snapshot_age(self._age_s)
        metrics.slurm.watch_clock(self._skew_s)

    # -- what reconcilers ask and say -------------------------------------------------------------

    def meet(self, key: WorkloadKey, past: Past) -> None:
        """Start tracking a workload; only the first call counts."""
        self._book.meet(key, past, at=self._clock.monotonic())

    def receive(self, pod: PodUid, past: Past) -> None:
        """Start tracking a pod of a workload; only the first call counts."""
        self._book.receive(pod, past, at=self._clock.monotonic())

    def view(self, pod: Pod, key: WorkloadKey, concerns: Concerns | None = None) -> View:
        """Return what is known for certain of a pod's placeholders.

        Request what is not, and wake the workload when it is read.

        Args:
            pod: the pod.
            key: its workload's.
            concerns: which of the workload's placeholders matter for the pod; None for all.
        """
        view = self._book.view(key, pod=pod.uid, version=pod.resource_version, concerns=concerns)
        if self.is_unsure(key):
            return view  # the next change of that job wakes the workload
        if not view.fresh:
            self._waiting_for_news.add(key)
            if not self._book.lags(pod.uid, pod.resource_version):
                self._ask()
        elif not view.live and not view.surely_none:
            self._waiting_for_news.add(key)
            self._seeks_absence = True
        return view

    def wrote(self, key: WorkloadKey, *, may_still_happen: bool = False) -> None:
        """Record that a write to Slurm for this workload is over; call it in a `finally`.

        may_still_happen: it was a submit whose response was lost.
        """
        self._book.wrote(key, at=self._clock.monotonic(), may_still_happen=may_still_happen)
        self._waiting_for_news.add(key)
        self._ask()

    def share_with(self, audience: Audience) -> None:
        """Let somebody live from the same readings, for batch jobs."""
        self._audience = audience

    def ask(self) -> None:
        """Request an early reading."""
        self._ask()

    def stir(self) -> None:
        """Note an event after which Slurm may start jobs.

        Shorten the interval between readings for a while.
        """
        self._stirred_at = self._ours_stirred_at = self._clock.monotonic()
        self._bell.set()

    @property
    def waits(self) -> bool:
        """Whether a job of ours waits, or may: something was written and not read yet."""
        return bool(self._waiting_for_news) or any(True for _ in self._waiting())

    def soon(self) -> None:
        """Request an early reading: there may be news."""
        self._ask()

    def changed(self, job_id: JobId) -> None:
        """Note a change to a placeholder that its state does not show."""
        self._discovery.note_changed(job_id)

    def patched(self, pod: Pod) -> None:
        """Record a write to the pod that was decided on this version of it; call it in a `finally`."""
        self._book.patched(pod.uid, version=pod.resource_version, at=self._clock.monotonic())

    def forget(self, key: WorkloadKey) -> None:
        """Stop tracking the workload."""
        self._book.forget(key)
        self._waiting_for_news.discard(key)

    def forget_pod(self, uid: PodUid) -> None:
        """Stop tracking the pod."""
        self._book.forget_pod(uid)

    def of(self, key: WorkloadKey) -> tuple[SlurmJob, ...]:
        """Return a workload's placeholders as last read; later writes may be missing."""
        return self._snapshot.by_key.get(key, ()) if self._snapshot else ()

    def is_unsure(self, key: WorkloadKey) -> bool:
        """Check whether a placeholder of this workload is unreadable.

        Then the workload has one, and no more is known.
        """
        return self._snapshot is not None and key in self._snapshot.unsure

    def job(self, job_id: JobId) -> SlurmJob | None:
        """Return one of our placeholders as last read."""
        return self._snapshot.jobs.get(job_id) if self._snapshot else None

    @property
    def snapshot(self) -> Snapshot | None:
        """Return the last successful reading; None before the first."""
        return self._snapshot

    def whole_snapshot(self) -> Snapshot | None:
        """Return the last reading if absence from it proves absence from Slurm.

        Else None, and request such a reading.
        """
        if self._snapshot is not None and self._snapshot.is_whole:
            return self._snapshot
        self._seeks_absence = True
        return None

    def now(self) -> datetime:
        """Return the time to decide by: Slurm's, if this machine's clock differs from it."""
        clock = self._clock
        return clocks.trusted(clock.now(), clock.monotonic(), self._discovery.slurms_time)

    def health(self) -> str | None:
        """Return what is wrong with our view of Slurm; None if nothing is."""
        if self._age_s() < _STALE_AFTER_S:
            return None
        return f"no news of Slurm for {self._age_s():.0f} s: {self._trouble or 'no reading yet'}"

    # -- the loop ---------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, *, wake: Callable[[WorkloadKey], None]) -> None:
        """Read Slurm repeatedly until told to stop.

        Args:
            stop: ends the loop.
            wake: called with the key of each workload that has news or waited for a reading.
        """
        await liveness.run("placeholders", self._read_forever(wake), stop)

    async def _read_forever(self, wake: Callable[[WorkloadKey], None]) -> None:
        while True:
            began = self._clock.monotonic()
            for key in await self._read():
                wake(key)
            await self._pause(took_s=self._clock.monotonic() - began)

    async def _read(self) -> set[WorkloadKey]:
        """Read Slurm once; return the workloads to wake."""
        self._is_asked = False
        whole, self._seeks_absence = self._seeks_absence, False
        news, self._waiting_for_news = self._waiting_for_news, set()
        others = self._audience.wants() if self._audience else Wants()
        try:
            snapshot = await self._discovery.refresh(
                reasons_for=(*self._due(self._clock.monotonic()), *others.due),
                surely=bool(news) or self._is_questioned or others.surely,
                whole=whole or others.whole,
            )
        except SlurmError as error:
            self._failed(error)
            self._waiting_for_news |= news
            self._seeks_absence |= whole
            return set()
        if self._trouble:
            _log.info("slurm.reachable_again", after_s=round(self._age_s(), 1))
        self._trouble, self._read_at = "", self._clock.monotonic()
        self._compare_clocks()
        self._is_questioned = bool(news)
        if not snapshot.is_repeated:
            self._stirred_at = self._read_at
        self._book.read(snapshot)
        if self._audience:
            self._audience.read(snapshot)
        before, self._snapshot = self._snapshot, snapshot
        if before is None or before.jobs is not snapshot.jobs:
            phases = Counter(job.phase for job in snapshot.jobs.values())
            if phases != self._phases:  # a new reason to wait is no reason for more readings
                self._phases, self._ours_stirred_at = phases, self._read_at
            self._metrics.placeholders.count({phase.value: phases[phase] for phase in JobPhase})
        self._metrics.placeholders.waiting(
            Counter(reasons.condition_reason(job.reason) for job in self._waiting())
        )
        # A workload that wrote or asked after this reading began waits for the next one.
        return news.union(_changed(before, snapshot)) - self._waiting_for_news

    def _compare_clocks(self) -> None:
        skew_s = self._skew_s()
        before, self._is_clock_off = self._is_clock_off, abs(skew_s) > clocks.AGREE_S
        if self._is_clock_off and not before:
            _log.error("clock.differs", skew_s=round(skew_s), decides_by="slurmctld's clock")
        elif before and not self._is_clock_off:
            _log.info("clock.agrees")

    def _skew_s(self) -> float:
        """Return slurmctld's clock minus this machine's; 0 if it is not known."""
        reference = self._discovery.slurms_time
        if reference is None:
            return 0.0
        return reference.skew_s(self._clock.now(), self._clock.monotonic())

    def _due(self, now: float) -> tuple[JobId, ...]:
        """Return the jobs to read although their state is unchanged."""
        limited = self._limited() if self._pace.limits else ()
        return (*self._reasons.due(self._told_about(), now), *self._limits.due(limited, now))

    def _failed(self, error: SlurmError) -> None:
        self._book.failed()
        if self._audience:
            self._audience.failed()
        advice = ": renew the token in slurm.token_file" if isinstance(error, Unauthorized) else ""
        trouble = f"{error}{advice}"
        if trouble != self._trouble:
            _log.warning("slurm.unreadable", error=trouble)
        self._trouble = trouble

    async def _pause(self, *, took_s: float) -> None:
        """Wait until the next reading is due or requested.

        While Slurm cannot be read, requests have no effect.
        """
        if self._trouble:
            liveness.turned(self._pace.idle_s)
            await self._clock.sleep(self._pace.idle_s)
            return
        if self._snapshot is not None and self._snapshot.is_behind:
            liveness.turned(self._pace.shortest_s)
            await self._clock.sleep(self._pace.shortest_s)
            return
        since = self._clock.monotonic()
        shortest_s = min(max(self._pace.shortest_s, 2 * took_s), _LONGEST_PAUSE_S)
        liveness.turned(shortest_s)
        await self._clock.sleep(shortest_s)
        while not self._is_asked and (left_s := self._due_at(since) - self._clock.monotonic()) > 0:
            self._bell.clear()
            liveness.turned(left_s)
            await pause(left_s, self._bell)

    def _due_at(self, since: float) -> float:
        """Return when the next unrequested reading is due; since: when the last one ended."""
        if self._waiting_for_news:
            return since + self._pace.busy_s
        now, interval_s = self._clock.monotonic(), self._pace.idle_s
        if any(self._waiting()):
            interval_s = self._pace.while_waiting_s(calm_s=now - self._stirred_at)
        rest_s = self._pace.rest_s(
            listed_s=self._discovery.listed_s, calm_s=now - self._ours_stirred_at
        )
        return since + max(interval_s, rest_s)

    def _ask(self) -> None:
        self._is_asked = True
        self._bell.set()

    def _told_about(self) -> Iterator[SlurmJob]:
        """Yield the pending placeholders whose pods we own, as we report their reasons."""
        return (job for job in self._waiting() if self._book.knows(job.identity.key))

    def _waiting(self) -> Iterator[SlurmJob]:
        jobs = self._snapshot.jobs.values() if self._snapshot else ()
        return (job for job in jobs if job.phase is JobPhase.WAITING)

    def _limited(self) -> list[JobId]:
        """List the running jobs that may be changed: their time limit, or their number of nodes."""
        jobs = self._snapshot.jobs.values() if self._snapshot else ()
        return [
            job.id
            for job in jobs
            if job.phase is JobPhase.RUNNING and (job.ends_at is not None or len(job.nodes) > 1)
        ]

    def _age_s(self) -> float:
        return self._clock.monotonic() - self._read_at


def _changed(before: Snapshot | None, after: Snapshot) -> Iterator[WorkloadKey]:
    """Yield the workloads whose placeholders differ between the two readings."""
    old = before.by_key if before else {}
    if old is after.by_key:
        return
    for key, jobs in after.by_key.items():
        if old.get(key) != jobs:
            yield key
    yield from old.keys() - after.by_key.keys()
    yield from after.unsure ^ (before.unsure if before else frozenset())
