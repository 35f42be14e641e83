"""The circuit breaker: many pods at once are not evicted for what may be Slurm's mistake.

A wiped slurmctld, a configuration without a partition or its nodes, a plausible but wrong answer:
each would empty a cluster within seconds. So if too large a share of the running pods has lost its
placeholder, none is evicted for that before an operator allows it. Level-triggered: only the
current state counts, including pods that are already going away for this reason; nothing has to be
remembered, and once the placeholders are back it closes by itself.

It is for losses only (`Cause.is_loss`). A cancel, a preemption, a limit, a job that was made smaller
were meant for that very job, and its user can bring them about: their pods go, however many they
are. Otherwise a user who cancels enough of their own jobs would go on computing without any. They
do not count either while their containers stop, when Slurm has forgotten their jobs in the meantime.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle import outcome, reasons
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod

_READ_BY_NOW = timedelta(seconds=15)
"""By this age of the pod its placeholder was read: the other program placed the pod and sees it
even earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many pods may be evicted at once; the breaker opens when both limits are exceeded."""

    share: float = 0.3
    """Share of the running pods, above 0 and at most 1."""
    always: int = 20
    """This many in any case."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of running pods, and those that have lost their placeholder."""

    running: int
    bereft: tuple[Pod, ...] = ()

    def is_too_much(self, limits: Limits) -> bool:
        """Check whether evicting them all would be a disaster."""
        return len(self.bereft) > max(limits.always, limits.share * self.running)


def tally(pods: Iterable[tuple[Pod, SlurmJob | None]], now: datetime) -> Tally:
    """Count all our pods, each with its placeholder if Slurm knows one, live or ended."""
    running = [(pod, job) for pod, job in pods if pod.is_bound and not pod.is_terminal]
    return Tally(len(running), tuple(pod for pod, job in running if _is_bereft(pod, job, now)))


def evict_until(text: str) -> datetime:
    """Parse the operator's permission.

    Raises ValueError if it is not a moment with a time zone, such as 2026-05-04T12:00:00Z.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        raise ValueError(
            f"expected a time with its zone, such as 2026-05-04T12:00:00Z, found {text!r}"
        )
    return moment.astimezone(UTC)


def _is_bereft(pod: Pod, job: SlurmJob | None, now: datetime) -> bool:
    if job is None and pod.is_deleting:
        cause = outcome.cause_of_eviction(pod)
        return cause is not None and cause.is_loss
    if job is None:
        return pod.start_time is not None and now - pod.start_time > _READ_BY_NOW
    if job.phase is not JobPhase.ENDED or job.end is None:
        return False
    return reasons.cause_of(job.end).is_loss
