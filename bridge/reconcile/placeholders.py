"""What an elected leader knows of our placeholders in Slurm, kept up to date on a budget.

One reading serves everybody who waits: `/jobs/state/` whole, plus one GET for each job that is new or has changed. The
budget has four parts: readings follow each other at the busy or the idle pace, or, where jobs wait and nothing happens, ever
slower from one to the other, and the pause after a slow one is twice its time, within limits; a write or a question asks
for the next one early; and Slurm's *reasons* for letting jobs wait,
which no list has, are read in turn, a few a second, however many jobs wait; and so are the limits of those that run.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

import structlog

from bridge.domain.ids import JobId, PodUid, WorkloadKey
from bridge.domain.lifecycle import reasons
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.turns import Round, Turns
from bridge.domain.observation.view import Book, Concerns, Past, View
from bridge.process import liveness
from bridge.process.clock import Clock, pause
from bridge.process.metrics import Metrics
from bridge.slurm.discovery import Discovery, Snapshot
from bridge.slurm.errors import SlurmError, Unauthorized

_log = structlog.get_logger(__name__)

_LONGEST_PAUSE_S = 5.0
"""After a reading that was slow; it may have been slow only this once."""

_STALE_AFTER_S = 15.0
"""Without a successful reading for so long, the leader is not ready: one slow answer, or a restart of Slurm's, is no news."""


class Placeholders:
    """One leader's picture of Slurm; made when leadership begins, dropped when it ends."""

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
        self._bell = asyncio.Event()
        """Rung when the next reading may be due earlier than it was."""
        self._is_asked = False
        """For the next reading, as soon as may be."""
        self._waiting_for_news: set[WorkloadKey] = set()
        self._seeks_absence = False
        """Somebody wants to know of what is not there."""
        self._is_questioned = False
        """Somebody waited for the last reading: two in a row may be needed to answer."""
        self._reasons = Turns(first_per_s=pace.first_reasons_per_s, after_s=pace.reasons_after_s)
        self._limits = Round()
        metrics.watch_snapshot_age(self._age_s)

    # -- what reconcilers ask and say -------------------------------------------------------------

    def meet(self, uid: WorkloadKey, past: Past) -> None:
        """Begin to keep book on a workload; the first time counts."""
        self._book.meet(uid, past, at=self._clock.monotonic())

    def view(self, pod: Pod, uid: WorkloadKey, concerns: Concerns | None = None) -> View:
        """Say what is surely known of a pod's placeholders; what is not yet, is asked for and wakes its workload.

        Args:
            pod: the pod.
            uid: its workload's.
            concerns: which of the workload's placeholders matter for it; None are all.
        """
        view = self._book.view(uid, pod=pod.uid, version=pod.resource_version, concerns=concerns)
        if self.is_unsure(uid):
            return view  # the next change of that job wakes the workload
        if not view.fresh:
            self._waiting_for_news.add(uid)
            self._ask()
        elif not view.live and not view.surely_none:
            self._waiting_for_news.add(uid)
            self._seeks_absence = True
        return view

    def wrote(self, uid: WorkloadKey, *, may_still_happen: bool = False) -> None:
        """Note that a write to Slurm about this workload is over; call it in a `finally`.

        may_still_happen: it was a submit whose reply was lost.
        """
        self._book.wrote(uid, at=self._clock.monotonic(), may_still_happen=may_still_happen)
        self._waiting_for_news.add(uid)
        self._ask()

    def stir(self) -> None:
        """Note that something has happened after which Slurm may start jobs: readings follow each other faster for a while."""
        self._stirred_at = self._clock.monotonic()
        self._bell.set()

    def changed(self, job_id: JobId) -> None:
        """Note that something of a placeholder was changed that its state does not show."""
        self._discovery.note_changed(job_id)

    def patched(self, pod: Pod) -> None:
        """Note a write to the pod itself, decided on this version of it; call it in a `finally`."""
        self._book.patched(pod.uid, version=pod.resource_version, at=self._clock.monotonic())

    def forget(self, uid: WorkloadKey) -> None:
        """The workload is no longer ours to watch."""
        self._book.forget(uid)
        self._waiting_for_news.discard(uid)

    def forget_pod(self, uid: PodUid) -> None:
        """The pod is no longer ours to watch."""
        self._book.forget_pod(uid)

    def of(self, uid: WorkloadKey) -> tuple[SlurmJob, ...]:
        """A workload's placeholders as last read; what was written since may be missing."""
        return self._snapshot.by_uid.get(uid, ()) if self._snapshot else ()

    def is_unsure(self, uid: WorkloadKey) -> bool:
        """Say whether a placeholder of this workload cannot be read: then it has one, and more is not known."""
        return self._snapshot is not None and uid in self._snapshot.unsure

    def job(self, job_id: JobId) -> SlurmJob | None:
        """One of our placeholders as last read."""
        return self._snapshot.jobs.get(job_id) if self._snapshot else None

    @property
    def snapshot(self) -> Snapshot | None:
        """The last successful reading; None before the first."""
        return self._snapshot

    def whole_snapshot(self) -> Snapshot | None:
        """The last reading, if what it does not show is not there; else None, and the next one will be such."""
        if self._snapshot is not None and self._snapshot.is_whole:
            return self._snapshot
        self._seeks_absence = True
        return None

    def health(self) -> str | None:
        """Say what is wrong with our view of Slurm; None if nothing is."""
        if self._age_s() < _STALE_AFTER_S:
            return None
        return f"no news of Slurm for {self._age_s():.0f} s: {self._trouble or 'no reading yet'}"

    # -- the loop ---------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, *, wake: Callable[[WorkloadKey], None]) -> None:
        """Read Slurm again and again until told to stop.

        Args:
            stop: ends it.
            wake: called with the uid of each workload that there is news of, or that waited for a reading.
        """
        await liveness.run("placeholders", self._read_forever(wake), stop)

    async def _read_forever(self, wake: Callable[[WorkloadKey], None]) -> None:
        while True:
            began = self._clock.monotonic()
            for uid in await self._read():
                wake(uid)
            await self._pause(took_s=self._clock.monotonic() - began)

    async def _read(self) -> set[WorkloadKey]:
        """Read Slurm once; returns the workloads to wake."""
        self._is_asked = False
        whole, self._seeks_absence = self._seeks_absence, False
        news, self._waiting_for_news = self._waiting_for_news, set()
        try:
            snapshot = await self._discovery.refresh(
                reasons_for=self._due(self._clock.monotonic()),
                surely=bool(news) or self._is_questioned,
                whole=whole,
            )
        except SlurmError as error:
            self._failed(error)
            self._waiting_for_news |= news
            self._seeks_absence |= whole
            return set()
        if self._trouble:
            _log.info("slurm.reachable_again", after_s=round(self._age_s(), 1))
        self._trouble, self._read_at = "", self._clock.monotonic()
        self._is_questioned = bool(news)
        if not snapshot.is_repeated:
            self.stir()
        self._book.read(snapshot)
        before, self._snapshot = self._snapshot, snapshot
        if before is None or before.jobs is not snapshot.jobs:
            phases = Counter(job.phase for job in snapshot.jobs.values())
            self._metrics.placeholders({phase.value: phases[phase] for phase in JobPhase})
        self._metrics.waiting(
            Counter(reasons.condition_reason(job.reason) for job in self._waiting())
        )
        # Who has written, or asked, since this reading began waits for the next one.
        return news.union(_changed(before, snapshot)) - self._waiting_for_news

    def _due(self, now: float) -> tuple[JobId, ...]:
        """Whom to look at although its state is the same."""
        limited = self._limited() if self._pace.limits else ()
        return (*self._reasons.due(self._told_about(), now), *self._limits.due(limited, now))

    def _failed(self, error: SlurmError) -> None:
        self._book.failed()
        advice = ": renew the token in slurm.token_file" if isinstance(error, Unauthorized) else ""
        trouble = f"{error}{advice}"
        if trouble != self._trouble:
            _log.warning("slurm.unreadable", error=trouble)
        self._trouble = trouble

    async def _pause(self, *, took_s: float) -> None:
        """Wait until the next reading is due, or asked for; while Slurm cannot be read, asking does not help."""
        if self._trouble:
            liveness.turned(self._pace.idle_s)
            await self._clock.sleep(self._pace.idle_s)
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
        """When the next reading is due that nobody asks for; since: when the last one ended."""
        if self._waiting_for_news:
            return since + self._pace.busy_s
        if any(self._waiting()):
            calm_s = self._clock.monotonic() - self._stirred_at
            return since + self._pace.while_waiting_s(calm_s=calm_s)
        return since + self._pace.idle_s

    def _ask(self) -> None:
        self._is_asked = True
        self._bell.set()

    def _told_about(self) -> Iterator[SlurmJob]:
        """Of those that wait: the ones whose pods are in our hands, so that we tell them why."""
        return (job for job in self._waiting() if self._book.knows(job.identity.uid))

    def _waiting(self) -> Iterator[SlurmJob]:
        jobs = self._snapshot.jobs.values() if self._snapshot else ()
        return (job for job in jobs if job.phase is JobPhase.WAITING)

    def _limited(self) -> list[JobId]:
        jobs = self._snapshot.jobs.values() if self._snapshot else ()
        return [job.id for job in jobs if job.phase is JobPhase.RUNNING and job.ends_at is not None]

    def _age_s(self) -> float:
        return self._clock.monotonic() - self._read_at


def _changed(before: Snapshot | None, after: Snapshot) -> Iterator[WorkloadKey]:
    """The workloads of whose placeholders the two readings say different things."""
    old = before.by_uid if before else {}
    if old is after.by_uid:
        return
    for uid, jobs in after.by_uid.items():
        if old.get(uid) != jobs:
            yield uid
    yield from old.keys() - after.by_uid.keys()
    yield from after.unsure ^ (before.unsure if before else frozenset())
