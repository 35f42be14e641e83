"""What was measured in a hostile run, as plain values, and how it compares with its goals. Pure."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.results import Spread, spread

ALONE, BESIDE, WRONG = "alone", "beside all of them", "and Slurm answers wrongly"
"""The three stretches of a run."""
TIMES = 2.0
"""Goal: p99 of CREATE → bound beside the hostile ÷ alone."""
LONGEST_STAND_S = 0.25
"""Goal, of any event loop."""
MEMORY_SHARE = 0.8
"""Goal: the peak of each program, of its limit in the chart."""
FAILED_PROBES = 6
"""So many in a row, and a kubelet restarts a program: `failureThreshold` in the chart."""
SHOWN_FOR_S = 600.0
"""A standstill is in the metrics for at most so long: twice `slurmruntime.process.standstill.WINDOW_S`."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the run; both moments by the monotonic clock, which all processes share."""

    name: str
    began_s: float
    ended_s: float

    def has(self, moment_s: float) -> bool:
        """Whether this moment is in it."""
        return self.began_s <= moment_s < self.ended_s


@dataclass(frozen=True, slots=True)
class Burst:
    """One attack, from its first request to its last."""

    actor: str
    what: str
    began_s: float
    ended_s: float
    failure: str = ""
    """An exception that it ended with; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at one of our programs."""

    at_s: float
    pid: int
    memory_mib: float
    cpu_s: float
    """Since the process began."""
    stand_s: float | None = None
    """The longest standstill that its metrics show; None if they were not asked, or did not answer."""
    is_alive: bool | None = None
    """The answer to a probe of a kubelet's; None if there was none this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a whole run cost one of our programs."""

    name: str
    limit_mib: float
    peak_mib: float
    stand_alone_s: float | None
    """None for a program without an event loop, or one that never answered."""
    stand_s: float | None
    """While the hostile were there."""
    cpu_alone: float
    """Cores."""
    cpu: float
    restarts: int
    failed_probes: int
    """In a row, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure, and what it may be at most."""

    name: str
    value: float
    most: float
    unit: str = ""

    @property
    def is_reached(self) -> bool:
        """At most what it may be."""
        return self.value <= self.most


def account(
    name: str, limit_mib: float, readings: Sequence[Reading], stretches: Sequence[Stretch]
) -> Account:
    """Sum up the readings of one program, in order.

    The stretches are those of the run; all but the first belong to the hostile.
    """
    alone, *hostile = stretches
    began_s, ended_s = hostile[0].began_s, hostile[-1].ended_s
    pids = [reading.pid for reading in readings]
    return Account(
        name=name,
        limit_mib=limit_mib,
        peak_mib=max((reading.memory_mib for reading in readings), default=0.0),
        stand_alone_s=_longest_stand_s(readings, alone.began_s, alone.ended_s),
        stand_s=_longest_stand_s(readings, began_s, ended_s),
        cpu_alone=_cores(readings, alone.began_s, alone.ended_s),
        cpu=_cores(readings, began_s, ended_s),
        restarts=sum(before != now for before, now in itertools.pairwise(pids)),
        failed_probes=_longest_row(
            not reading.is_alive for reading in readings if reading.is_alive is not None
        ),
    )


def _longest_stand_s(readings: Sequence[Reading], began_s: float, ended_s: float) -> float | None:
    """Return the longest standstill between two moments.

    The metric shows one of up to ten minutes ago: what it showed before counts only when that is over. All that a new process shows is its own.
    """
    shown = [reading for reading in readings if reading.stand_s is not None]
    before = [reading for reading in shown if reading.at_s < began_s]
    pid, known_s = (before[-1].pid, before[-1].stand_s or 0.0) if before else (0, 0.0)
    longest_s: float | None = None
    for reading in shown:
        if not began_s <= reading.at_s < ended_s:
            continue
        stand_s = reading.stand_s or 0.0
        if reading.pid != pid:
            pid, known_s = reading.pid, 0.0
        is_of_now = stand_s > known_s or reading.at_s >= began_s + SHOWN_FOR_S
        longest_s = max(longest_s or 0.0, stand_s if is_of_now else 0.0)
        known_s = min(known_s, stand_s)
    return longest_s


def suspects(readings: Sequence[Reading], bursts: Sequence[Burst], began_s: float) -> Sequence[str]:
    """Return which attacks went on when the longest standstill since that moment was first shown, and since the look before."""
    shown = [one for one in readings if one.stand_s is not None and one.at_s >= began_s]
    longest_s = max((one.stand_s or 0.0 for one in shown), default=0.0)
    for before, now in itertools.pairwise(shown):
        if now.stand_s == longest_s:
            during = (b for b in bursts if b.began_s < now.at_s and b.ended_s > before.at_s)
            return sorted({burst.what for burst in during})
    return ()


def _cores(readings: Sequence[Reading], began_s: float, ended_s: float) -> float:
    within = [reading for reading in readings if began_s <= reading.at_s < ended_s]
    if len(within) < 2:  # a difference needs two
        return 0.0
    spent_s = sum(
        max(0.0, now.cpu_s - before.cpu_s) if now.pid == before.pid else now.cpu_s
        for before, now in itertools.pairwise(within)
    )
    return spent_s / (within[-1].at_s - within[0].at_s)


def _longest_row(hits: Iterable[bool]) -> int:
    longest = row = 0
    for is_hit in hits:
        row = row + 1 if is_hit else 0
        longest = max(longest, row)
    return longest


def times(
    sent: Mapping[str, float], bound: Mapping[str, float], stretch: Stretch
) -> tuple[Spread | None, int]:
    """Return how long the pods that were sent in a stretch took to their node, and how many never got there."""
    names = [name for name, moment_s in sent.items() if stretch.has(moment_s)]
    took = [bound[name] - sent[name] for name in names if name in bound]
    return (spread(took) if took else None), len(names) - len(took)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """All bursts of one kind."""

    actor: str
    what: str
    bursts: int
    failures: int
    failure: str
    """The last one; "" for none."""
    p99_s: float | None
    """Of the honest pods that were created during any of them; other attacks went on beside."""


def attacks(
    bursts: Sequence[Burst], sent: Mapping[str, float], bound: Mapping[str, float]
) -> Iterator[Attack]:
    """Yield what there was, the dearest for the honest first."""
    kinds: dict[tuple[str, str], list[Burst]] = {}
    for burst in bursts:
        kinds.setdefault((burst.actor, burst.what), []).append(burst)
    summed = [_attack(*kind, of_it, sent, bound) for kind, of_it in kinds.items()]
    yield from sorted(summed, key=lambda attack: -(attack.p99_s or 0.0))


def _attack(
    actor: str,
    what: str,
    bursts: Sequence[Burst],
    sent: Mapping[str, float],
    bound: Mapping[str, float],
) -> Attack:
    took = [
        bound[name] - moment_s
        for name, moment_s in sent.items()
        if name in bound and any(b.began_s <= moment_s < b.ended_s for b in bursts)
    ]
    failures = [burst.failure for burst in bursts if burst.failure]
    return Attack(
        actor=actor,
        what=what,
        bursts=len(bursts),
        failures=len(failures),
        failure=failures[-1] if failures else "",
        p99_s=spread(took).p99_s if took else None,
    )


def goals(
    alone: Spread,
    beside: Spread,
    accounts: Sequence[Account],
    *,
    unbound: int,
    held_back: int,
    breaches: int,
) -> Iterator[Goal]:
    """Yield every goal of the run."""
    yield Goal(name="p99 of CREATE → bound, ÷ alone", value=beside.p99_s / alone.p99_s, most=TIMES)
    yield Goal(name="honest pods that never got a node", value=unbound, most=0)
    name = "honest pods that could not come, as too many were alive"
    yield Goal(name=name, value=held_back, most=0)
    for one in accounts:
        if one.stand_s is not None:
            name = f"longest stand of {one.name}'s loop"
            yield Goal(name=name, value=1000 * one.stand_s, most=1000 * LONGEST_STAND_S, unit="ms")
        yield Goal(
            name=f"memory of {one.name}, of its limit",
            value=100 * one.peak_mib / one.limit_mib,
            most=100 * MEMORY_SHARE,
            unit="%",
        )
        yield Goal(name=f"restarts of {one.name}", value=one.restarts, most=0)
        name = f"failed probes of {one.name}, in a row"
        yield Goal(name=name, value=one.failed_probes, most=FAILED_PROBES - 1)
    yield Goal(name="contracts broken", value=breaches, most=0)
