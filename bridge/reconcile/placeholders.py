"""Keep one side's view of our placeholders in Slurm up to date, on a budget.

`bridge.reconcile.reading` reads Slurm; this module decides what a reading has to contain, and interprets
it. The budget:

- Readings follow each other at the busy or the idle interval; while jobs wait and nothing happens,
  the interval grows from the one to the other.
- A write or a question requests an early reading.
- The *reasons* why Slurm lets jobs wait, which no list contains, are read round robin, a few a
  second, however many jobs wait; so are the limits of running jobs.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.turns import LimitRoundRobin, ReasonRoundRobin
from bridge.domain.observation.view import Book, Concerns, Past, View
from bridge.reconcile.reading.audience import Audience, Wants
from bridge.reconcile.reading.readings import Readings
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import JobId, PodUid, WorkloadKey

Wake = Callable[[WorkloadKey], None]
"""Called with each workload that has news, or that waited for a reading."""


class Placeholders:
    """One side's view of Slurm; created when leadership begins, dropped when it ends."""

    def __init__(
        self,
        discovery: Discovery,
        *,
        pace: Pace,
        clock: Clock,
        metrics: Metrics,
        readings: Readings | None = None,
    ) -> None:
        """readings: shared with another side, by the same discovery; None: its own."""
        self._discovery = discovery
        self.pace = pace
        self._clock = clock
        self._readings = readings or Readings(discovery, clock=clock, metrics=metrics)
        self._readings.serve(self)
        self._wake: Wake = _ignore
        self._remind: Wake = _ignore
        self._book = Book(quiet_s=pace.quiet_s)
        self.snapshot: Snapshot | None = None
        """The last successful reading; None before the first."""
        self._stirred_at = clock.monotonic()
        """When something last happened that may let jobs start."""
        self._phases: Counter[JobPhase] = Counter()
        self._ours_stirred_at = self._stirred_at
        """When something of ours last happened."""
        self.is_asked = False
        """True if the next reading is wanted as soon as possible."""
        self._waiting_for_news: set[WorkloadKey] = set()
        self._seeks_absence = False
        """True if a workload needs to know that it has no placeholder."""
        self._is_questioned = False
        """True if a workload waited for the last reading: an answer may take two in a row."""
        self._waiters: tuple[frozenset[WorkloadKey], bool] = frozenset(), False
        """The workloads that wait for the reading under way, and whether absence matters in it."""
        self._reasons = ReasonRoundRobin(
            first_per_s=pace.first_reasons_per_s, after_s=pace.reasons_after_s
        )
        self._limits = LimitRoundRobin()
        self._audience: Audience | None = None

    # -- called by reconcilers --------------------------------------------------------------------

    def meet(self, key: WorkloadKey, past: Past) -> None:
        """Start tracking a workload; only the first call counts."""
        self._book.meet(key, past, at=self._clock.monotonic())

    def receive(self, pod: PodUid, past: Past) -> None:
        """Start tracking a pod of a workload; only the first call counts."""
        self._book.receive(pod, past, at=self._clock.monotonic())

    def view(self, pod: Pod, key: WorkloadKey, concerns: Concerns | None = None) -> View:
        """Return what is known for certain of a pod's placeholders.

        If that is not enough, request a reading, and wake the workload after it.

        Args:
            concerns: which of the workload's placeholders matter for the pod; None for all.
        """
        view = self._book.view(key, pod=pod.uid, version=pod.resource_version, concerns=concerns)
        if self.is_unsure(key):
            return view  # the next change of that job wakes the workload
        if not view.fresh:
            self._waiting_for_news.add(key)
            if not self._book.lags(pod.uid, pod.resource_version):
                self.ask()
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
        self.ask()

    def is_awaited(self, key: WorkloadKey) -> bool:
        """Check whether the workload waits for a reading."""
        return key in self._waiting_for_news

    def share_with(self, audience: Audience) -> None:
        """Pass the same readings on to another consumer, for batch jobs."""
        self._audience = audience

    def ask(self) -> None:
        """Request an early reading: there may be news."""
        self.is_asked = True
        self._readings.notify()

    def stir(self) -> None:
        """Note that Slurm may start jobs: the interval between readings is short for a while."""
        self._stirred_at = self._ours_stirred_at = self._clock.monotonic()
        self._readings.notify()

    @property
    def waits(self) -> bool:
        """Whether a job of ours waits, or may: something was written and not read yet."""
        return bool(self._waiting_for_news) or any(True for _ in self._waiting())

    def changed(self, job_id: JobId) -> None:
        """Note a change to a placeholder that its state does not show."""
        self._discovery.note_changed(job_id)

    def submitted(self, job_id: JobId, identity: Identity, *, in_detail: bool = False) -> None:
        """Note a new placeholder; in_detail: the next readings need all of it."""
        self._discovery.note_submitted(job_id, identity, in_detail=in_detail)

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
        return self.snapshot.by_key.get(key, ()) if self.snapshot else ()

    def is_unsure(self, key: WorkloadKey) -> bool:
        """Check whether a placeholder of this workload is unreadable.

        Then the workload has one, and no more is known.
        """
        return self.snapshot is not None and key in self.snapshot.unsure

    def job(self, job_id: JobId) -> SlurmJob | None:
        """Return one of our placeholders as last read."""
        return self.snapshot.jobs.get(job_id) if self.snapshot else None

    def whole_snapshot(self, *, since: float = -math.inf) -> Snapshot | None:
        """Return the last reading if absence from it proves absence from Slurm, and it began after that moment.

        Else None, and request such a reading.
        """
        last = self.snapshot
        if last is not None and last.is_whole and last.began_monotonic > since:
            return last
        self._seeks_absence = True
        return None

    def now(self) -> datetime:
        """Return the time to decide by: Slurm's, if this machine's clock differs from it."""
        return self._readings.now()

    def health(self) -> str | None:
        """Return what is wrong with our view of Slurm; None if nothing is."""
        return self._readings.health()

    async def run(self, stop: asyncio.Event, *, wake: Wake, remind: Wake | None = None) -> None:
        """Take in readings until `stop` is set; remind: of workloads without news, else `wake`."""
        self._wake, self._remind = wake, remind or wake
        await self._readings.run(stop)

    # -- called by readings -----------------------------------------------------------------------

    def wants(self) -> Wants:
        """Return what the reading that begins now has to contain."""
        self.is_asked = False
        seeks_absence, self._seeks_absence = self._seeks_absence, False
        news, self._waiting_for_news = self._waiting_for_news, set()
        self._waiters = frozenset(news), seeks_absence
        others = self._audience.wants() if self._audience else Wants()
        return Wants(
            due=(*self._due(self._clock.monotonic()), *others.due),
            surely=bool(news) or self._is_questioned or others.surely,
            complete=seeks_absence or others.complete,
        )

    def read(self, snapshot: Snapshot) -> None:
        """Take in a successful reading, and wake the workloads that it concerns."""
        news, _ = self._waiters
        now = self._clock.monotonic()
        self._is_questioned = bool(news)
        if not snapshot.is_repeated:
            self._stirred_at = now
        self._book.read(snapshot)
        if self._audience:
            self._audience.read(snapshot)
        before, self.snapshot = self.snapshot, snapshot
        if before is None or before.jobs is not snapshot.jobs:
            phases = Counter(job.phase for job in snapshot.jobs.values())
            if phases != self._phases:  # a new reason to wait is no reason for more readings
                self._phases, self._ours_stirred_at = phases, now
        # A workload that wrote or asked after this reading began waits for the next one.
        changed = frozenset(_changed(before, snapshot))
        for key in changed - self._waiting_for_news:
            self._wake(key)
        for key in news - changed - self._waiting_for_news:
            self._remind(key)

    def failed(self) -> None:
        """Note that a reading has failed: its waiters wait for the next one."""
        news, seeks_absence = self._waiters
        self._book.failed()
        if self._audience:
            self._audience.failed()
        self._waiting_for_news |= news
        self._seeks_absence |= seeks_absence

    def due_at(self, since: float) -> float:
        """Return when the next unrequested reading is due; since: when the last one ended."""
        if self._waiting_for_news:
            return since + self.pace.busy_s
        now, interval_s = self._clock.monotonic(), self.pace.idle_s
        if any(self._waiting()):
            interval_s = self.pace.while_waiting_s(calm_s=now - self._stirred_at)
        rest_s = self.pace.rest_s(
            listed_s=self._discovery.listed_s, calm_s=now - self._ours_stirred_at
        )
        return since + max(interval_s, rest_s)

    def _due(self, now: float) -> tuple[JobId, ...]:
        limited = self._limited() if self.pace.limits else ()
        return (*self._reasons.due(self._reported(), now), *self._limits.due(limited, now))

    def _reported(self) -> Iterator[SlurmJob]:
        return (job for job in self._waiting() if self._book.knows(job.identity.key))

    def _waiting(self) -> Iterator[SlurmJob]:
        jobs = self.snapshot.jobs.values() if self.snapshot else ()
        return (job for job in jobs if job.phase is JobPhase.WAITING)

    def _limited(self) -> list[JobId]:
        """List the running jobs that may be changed: their time limit, or their number of nodes."""
        jobs = self.snapshot.jobs.values() if self.snapshot else ()
        return [
            job.id
            for job in jobs
            if job.phase is JobPhase.RUNNING and (job.ends_at is not None or len(job.nodes) > 1)
        ]


def _ignore(_key: WorkloadKey) -> None:
    """Wake no workload: the loop has not begun."""


def _changed(before: Snapshot | None, after: Snapshot) -> Iterator[WorkloadKey]:
    old = before.by_key if before else {}
    if old is after.by_key:
        return
    for key, jobs in after.by_key.items():
        if old.get(key) != jobs:
            yield key
    yield from old.keys() - after.by_key.keys()
    yield from after.unsure ^ (before.unsure if before else frozenset())
