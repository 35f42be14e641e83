"""What is certain about a workload's jobs in Slurm: when absence counts, what is fresh.

A reading of Slurm is older than it looks: the request began, we wrote, the answer came. So each
actor (the leader of the extender, the leader of the controllers) keeps *expectations*, a `Book` of
when it last wrote about which workload, and a reading counts only from the moment it *began*. All
moments are seconds of that process's monotonic clock.
"""

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, assert_never

from bridge.domain.model.jobs import JobPhase, OwnJob, SlurmJob
from slurmruntime.values.ids import PodUid, WorkloadKey


class Evidence(enum.Enum):
    """What else is known about a placeholder that slurmctld does not (or no longer) know."""

    PENDING = "pending"
    """The lookup is still running."""
    NONE = "none"
    """Nothing: it may have been lost, or have ended and been purged."""
    LOST = "lost"
    """It never ended: slurmdbd has no end for it, or the job ids went backwards
    (`bridge.domain.lifecycle.evidence`)."""
    ENDED = "ended"
    """slurmdbd knows its end."""
    NODE_FAILED = "node failed"
    """slurmdbd knows its end, which may have been an accident (`Cause.is_loss`)."""


J = TypeVar("J", bound=OwnJob)
J_co = TypeVar("J_co", bound=OwnJob, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsView(Generic[J]):
    """What Slurm reports about one workload's jobs."""

    jobs: tuple[J, ...] = ()
    """Every job found *in Slurm* with this workload's identity, including ended ones as long as
    Slurm remembers them."""
    fresh: bool = False
    """Slurm was read, and the pod seen, after our last write to either; every action waits for
    that."""
    surely_none: bool = False
    """There is no live job and none can appear any more; absence in a single reading is not
    enough."""
    reachable: bool = True
    """False: the last reading failed, or a job of this workload could not be decoded; then nothing
    is concluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View(JobsView[SlurmJob]):
    """What Slurm reports about one workload's placeholders."""

    evidence: Evidence = Evidence.NONE
    """Looked up only where a pod lives and Slurm has no placeholder for it."""

    @property
    def live(self) -> tuple[SlurmJob, ...]:
        """Those that hold an allocation or may still get one."""
        return tuple(job for job in self.jobs if job.phase is not JobPhase.ENDED)

    @property
    def ended(self) -> tuple[SlurmJob, ...]:
        """Those that are over; Slurm forgets them after MinJobAge."""
        return tuple(job for job in self.jobs if job.phase is JobPhase.ENDED)


class Past(enum.Enum):
    """What others may have written about a workload before this process met it."""

    NOTHING = "nothing"
    """It is younger than our leadership: only we could have submitted for it."""
    HANDED_OVER = "handed over"
    """The other program wrote about it and is done (the extender, when it removed the pod's
    gate)."""
    IN_FLIGHT = "in flight"
    """A predecessor may have died or been deposed in the middle of a submit."""


class Reading(Protocol[J_co]):
    """One complete, successful reading of Slurm (`bridge.slurm.snapshot.Snapshot`)."""

    @property
    def began_monotonic(self) -> float:
        """When its first request was sent."""

    @property
    def by_key(self) -> Mapping[WorkloadKey, tuple[J_co, ...]]:
        """This cluster's jobs by their workload's key."""

    @property
    def is_whole(self) -> bool:
        """True if every job was decoded; if not, a missing one may be among the others."""

    @property
    def unsure(self) -> frozenset[WorkloadKey]:
        """The workloads with a placeholder that cannot be read: nothing is concluded about them."""


@dataclass(frozen=True, slots=True)
class _Marks:
    """From when on a reading counts for one workload; `-inf` while nothing was written about it."""

    fresh_from: float
    none_from: float

    def and_then(self, other: "_Marks") -> "_Marks":
        """Return from when on a reading counts after both."""
        return _Marks(max(self.fresh_from, other.fresh_from), max(self.none_from, other.none_from))


_UNWRITTEN = _Marks(-math.inf, -math.inf)


@dataclass(frozen=True, slots=True)
class _Patch:
    """Our last write to a pod."""

    version: str
    """The version it changed; a reader that still shows this version lags behind the write."""
    until: float


Concerns = Callable[[SlurmJob], bool]
"""Selects the placeholders that concern the pod in question: a group may be created again while its
predecessor still ends."""


class Expectations(Generic[J]):
    """One actor's expectations, from the beginning to the end of its leadership.

    Call `meet` when the actor takes on a workload, `receive` when it takes on a pod, `wrote` when a
    write to Slurm about it is over (answered, refused or lost: in a `finally`), `patched` after a
    write to one of its pods, `read` or `failed` after each reading of Slurm in the order they
    began, `forget` when the workload is gone. Nothing is done on the view of a workload that was
    never met.
    """

    def __init__(self, *, quiet_s: float) -> None:
        """quiet_s: how long Slurm may still accept a submit whose reply was lost."""
        self._quiet_s = quiet_s
        self._marks: dict[WorkloadKey, _Marks] = {}
        self._received: dict[str, _Marks] = {}
        self._patches: dict[str, _Patch] = {}
        self._latest: Reading[J] | None = None
        self._before: Reading[J] | None = None

    def meet(self, key: WorkloadKey, past: Past, *, at: float) -> None:
        """Start the record of a workload; only the first call counts."""
        if key not in self._marks:
            self._marks[key] = self._marks_after(past, at)

    def receive(self, pod: PodUid, past: Past, *, at: float) -> None:
        """Start the record of a pod; only the first call counts.

        Its workload may be known for long: a group that is created again under its name gets
        another placeholder, which no reading shows that began before.
        """
        if pod not in self._received:
            self._received[pod] = self._marks_after(past, at)

    def wrote(self, key: WorkloadKey, *, at: float, may_still_happen: bool = False) -> None:
        """Note that a write to Slurm about this workload was over at that moment.

        may_still_happen: a submit got no answer, and slurmctld may accept it when it wakes up.
        """
        quiet_s = self._quiet_s if may_still_happen else 0.0
        marks = self._marks.get(key, _UNWRITTEN)
        self._marks[key] = replace(
            marks, fresh_from=at, none_from=max(marks.none_from, at + quiet_s)
        )

    def patched(self, pod: str, *, version: str, at: float) -> None:
        """Note a write to the object itself, answered or lost, based on this version of it.

        Until another version appears, the cache lags behind our own write: a pod that we have just
        placed must not be taken for a waiting one. If the write did not happen after all, the quiet
        period ends the wait.

        Args:
            pod: the object's uid.
            version: its resourceVersion.
        """
        self._patches[pod] = _Patch(version, at + self._quiet_s)

    def knows(self, key: WorkloadKey) -> bool:
        """Check whether this workload was met."""
        return key in self._marks

    def forget(self, key: WorkloadKey) -> None:
        """Drop a workload that is gone or no longer ours."""
        self._marks.pop(key, None)

    def forget_pod(self, pod: str) -> None:
        """Drop a pod that is gone or no longer ours."""
        self._received.pop(pod, None)
        self._patches.pop(pod, None)

    def read(self, reading: Reading[J]) -> None:
        """Take in a successful reading of Slurm, or the last one updated by readings of single jobs."""
        if self._latest is None or self._latest.began_monotonic != reading.began_monotonic:
            self._before = self._latest
        self._latest = reading

    def failed(self) -> None:
        """Take in a failed reading: what was absent before must be absent twice again."""
        self._before = self._latest = None

    def seen(
        self,
        key: WorkloadKey,
        *,
        pod: str,
        version: str,
        concerns: Callable[[J], bool] | None = None,
    ) -> JobsView[J]:
        """Return what is known about this workload now.

        Args:
            pod: the uid of the object that the decision is about.
            version: its resourceVersion that the decision is based on.
            concerns: which of the workload's jobs concern it; None means all.
        """
        marks = self._marks.get(key)
        if self._latest is None or marks is None:
            return JobsView(reachable=self._latest is not None)
        if key in self._latest.unsure:
            return JobsView(reachable=False)
        marks = marks.and_then(self._received.get(pod, _UNWRITTEN))
        return JobsView(
            jobs=_jobs(self._latest, key, concerns),
            fresh=self._latest.began_monotonic > marks.fresh_from and not self.lags(pod, version),
            surely_none=self._has_none(key, marks, concerns),
        )

    def _marks_after(self, past: Past, at: float) -> _Marks:
        match past:
            case Past.NOTHING:
                return _UNWRITTEN
            case Past.HANDED_OVER:
                return _Marks(at, at)
            case Past.IN_FLIGHT:
                return _Marks(at, at + self._quiet_s)
            case _:
                assert_never(past)

    def lags(self, pod: str, version: str) -> bool:
        """Check whether the cache is behind our own write to the pod.

        The pod's next version ends that, or the quiet period: reading Slurm earlier does not.
        """
        patch = self._patches.get(pod)
        return (
            patch is not None
            and version == patch.version
            and (self._latest is None or self._latest.began_monotonic <= patch.until)
        )

    def _has_none(
        self, key: WorkloadKey, marks: _Marks, concerns: Callable[[J], bool] | None
    ) -> bool:
        """Require two readings in a row, unless nothing was ever written or Slurm still shows the end."""
        readings = [self._latest]
        if marks.fresh_from > -math.inf and not any(
            job.is_over for job in _jobs(self._latest, key, concerns)
        ):
            readings.append(self._before)
        return all(
            reading is not None
            and reading.is_whole
            and reading.began_monotonic > marks.none_from
            and all(job.is_over for job in _jobs(reading, key, concerns))
            for reading in readings
        )


class Book(Expectations[SlurmJob]):
    """An actor's expectations of placeholders."""

    def view(
        self, key: WorkloadKey, *, pod: PodUid, version: str, concerns: Concerns | None = None
    ) -> View:
        """Return what is known about this workload now (`seen`), still without evidence."""
        seen = self.seen(key, pod=pod, version=version, concerns=concerns)
        return View(
            jobs=seen.jobs,
            fresh=seen.fresh,
            surely_none=seen.surely_none,
            reachable=seen.reachable,
        )


def _jobs(
    reading: Reading[J] | None, key: WorkloadKey, concerns: Callable[[J], bool] | None
) -> tuple[J, ...]:
    jobs = reading.by_key.get(key, ()) if reading else ()
    return jobs if concerns is None else tuple(filter(concerns, jobs))
