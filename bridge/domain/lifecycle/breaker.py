"""The circuit breaker: many pods at once are not evicted on Slurm's word alone.

A plausible but wrong answer, a wiped slurmctld, a mistaken `scancel` of everything: each would
empty a cluster within seconds. So if too large a share of the running pods has lost its
placeholder, none is evicted before an operator allows it. Level-triggered: only the current state
counts, including pods that are already going away for this reason; nothing has to be remembered,
and once the placeholders are back it closes by itself. What pods did to themselves does not count:
a time limit that was reached, a container that never started.

It counts for each Slurm user, as everybody may cancel their own jobs: one user's keep nobody else's
pods on nodes that Slurm has given away. Only if the losses are not one user's does it hold back
everybody's.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle import released
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod

_READ_BY_NOW = timedelta(seconds=15)
"""By this age of the pod its placeholder was read: the other program placed the pod and sees it
even earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many pods may be evicted at once; the breaker opens when both limits are exceeded."""

    share: float
    """Share of the running pods, above 0 and at most 1."""
    always: int
    """This many in any case."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of running pods, and of those that have lost their placeholder."""

    running: int
    bereft: int

    def is_too_much(self, limits: Limits) -> bool:
        """Check whether evicting them all would be a disaster."""
        return self.bereft > max(limits.always, limits.share * self.running)


@dataclass(frozen=True, slots=True)
class Held:
    """Whose evictions are held back."""

    tally: Tally
    """Of their pods."""
    users: frozenset[str] | None = None
    """Slurm users; None: everybody."""

    def concerns(self, user: str) -> bool:
        """Check whether this Slurm user's pods are kept."""
        return self.users is None or user in self.users


def held(tallies: Mapping[str, Tally], limits: Limits) -> Held | None:
    """Decide whose evictions to hold back; None: nobody's.

    tallies: of each Slurm user.
    """
    total = _sum(tallies.values())
    too_much = frozenset(user for user, its in tallies.items() if its.is_too_much(limits))
    worst = max(tallies.values(), key=lambda its: its.bereft, default=Tally(0, 0))
    rest = Tally(total.running - worst.running, total.bereft - worst.bereft)
    is_general = total.is_too_much(limits) and (
        worst.bereft <= rest.bereft or rest.is_too_much(limits)
    )
    everybody = {user for user, its in tallies.items() if its.running}
    if is_general or (too_much and too_much == everybody):
        return Held(total)
    return Held(_sum(tallies[user] for user in too_much), too_much) if too_much else None


def tallies(pods: Iterable[tuple[str, Pod, SlurmJob | None]], now: datetime) -> Mapping[str, Tally]:
    """Count each Slurm user's pods."""
    by_user: defaultdict[str, list[tuple[Pod, SlurmJob | None]]] = defaultdict(list)
    for user, pod, job in pods:
        by_user[user].append((pod, job))
    return {user: tally(theirs, now) for user, theirs in by_user.items()}


def _sum(tallies: Iterable[Tally]) -> Tally:
    every = list(tallies)
    return Tally(sum(each.running for each in every), sum(each.bereft for each in every))


def tally(pods: Iterable[tuple[Pod, SlurmJob | None]], now: datetime) -> Tally:
    """Count all our pods, each with its placeholder if Slurm knows one, live or ended."""
    running = [(pod, job) for pod, job in pods if pod.is_bound and not pod.is_terminal]
    return Tally(len(running), sum(_is_bereft(pod, job, now) for pod, job in running))


def evict_until(text: str) -> datetime:
    """Parse the operator's permission.

    Raises:
        ValueError: it is not a moment with a time zone, such as 2026-05-04T12:00:00Z.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        raise ValueError(
            f"expected a time with its zone, such as 2026-05-04T12:00:00Z, found {text!r}"
        )
    return moment.astimezone(UTC)


def _is_bereft(pod: Pod, job: SlurmJob | None, now: datetime) -> bool:
    if job is None:
        return pod.start_time is not None and now - pod.start_time > _READ_BY_NOW
    if job.phase is JobPhase.ENDED:
        return job.end is not JobEnd.TIMEOUT
    return released.node_of(pod, job) is not None
