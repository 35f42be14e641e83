"""The circuit breaker: many pods at once are not evicted on Slurm's word alone.

An odd answer that makes sense, a wiped slurmctld, a mistaken `scancel` of everything: each would empty a cluster within
seconds. So where too large a share of the running pods has lost its placeholder, none is evicted before an operator says
so. Level-triggered: what counts is how things are, pods that are going away for it included; nothing has to be
remembered, and when the placeholders are there again it closes by itself. What pods have to do with themselves does
not count: a time limit that was reached, a container that never started.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod

_READ_BY_NOW = timedelta(seconds=15)
"""A placeholder is read long before its pod has run so long: the other program placed it, and sees it earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may go at once; more than both is too many."""

    share: float
    """Of the running pods, above 0 and at most 1."""
    always: int
    """So many in any case."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The running pods, and how many of them have lost their placeholder."""

    running: int
    bereft: int

    def is_too_much(self, limits: Limits) -> bool:
        """To evict them all would be a disaster, or the end of one."""
        return self.bereft > max(limits.always, limits.share * self.running)


def tally(pods: Iterable[tuple[Pod, SlurmJob | None]], now: datetime) -> Tally:
    """Count all of our pods, each with its placeholder as far as Slurm knows one, live or ended."""
    running = [(pod, job) for pod, job in pods if pod.is_bound and not pod.is_terminal]
    return Tally(len(running), sum(_is_bereft(pod, job, now) for pod, job in running))


def evict_until(text: str) -> datetime:
    """Read the operator's word.

    Raises:
        ValueError: it is no moment with its time zone, 2026-05-04T12:00:00Z.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        raise ValueError(
            f"expected a moment with its time zone, 2026-05-04T12:00:00Z, found {text!r}"
        )
    return moment.astimezone(UTC)


def _is_bereft(pod: Pod, job: SlurmJob | None, now: datetime) -> bool:
    if job is None:
        return pod.start_time is not None and now - pod.start_time > _READ_BY_NOW
    return job.phase is JobPhase.ENDED and job.end is not JobEnd.TIMEOUT
