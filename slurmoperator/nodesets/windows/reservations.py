"""The Slurm reservation in which outdated workers of a NodeSet are replaced, if that is scheduled.

It keeps jobs off their nodes from its start, and before that Slurm starts no job that might still
run then. Workers in it are replaced as in a rolling update: one whose job still runs is waited for.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slurmoperator.nodesets.plan import workers
from slurmoperator.nodesets.plan.workers import Case
from slurmoperator.objects import parts
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.workers.situation import PodStage
from slurmruntime.model.nodes import NodeReservation
from slurmruntime.values import numbers

_MINUTE: Final = timedelta(minutes=1)
_FLAGS: Final = frozenset({"MAINT", "IGNORE_JOBS"})
"""No job starts there, not even one that may use the reservation; running jobs continue."""
_EVERY: Final[Mapping[str, timedelta]] = {
    "HOURLY": timedelta(hours=1),
    "DAILY": timedelta(days=1),
    "WEEKDAY": timedelta(days=1),
    "WEEKEND": timedelta(days=1),
    "WEEKLY": timedelta(weeks=1),
}
"""Flags with which Slurm repeats a reservation, and how often."""
_SATURDAY: Final = 5
_WEEK: Final = 7


_WITH_SLURMD: Final = (PodStage.STARTING, PodStage.READY)
_LONGEST: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTimes:
    """When an update may take place."""

    start: datetime
    duration: timedelta
    flags: frozenset[str] = frozenset()
    """Flags of the reservation, in upper case."""

    @property
    def minutes(self) -> int:
        """Its length in whole minutes, Slurm's unit."""
        return max(-(-self.duration // _MINUTE), 1)


class ReservationStep(enum.Enum):
    """The change that a reservation needs."""

    NOTHING = "nothing"
    SAVE = "save"
    EXTEND = "extend"
    """Add nodes: those that it has stay reserved meanwhile, and also if Slurm refuses."""
    DELETE = "delete"


def waiting(case: Case) -> frozenset[str]:
    """Return the nodes of all workers to replace in a reservation, now or later, that Slurm has."""
    facts = case.facts
    if (
        facts.is_leaving
        or not case.may_replace
        or workers.strategy(facts.node_set) != "ScheduledUpdate"
    ):
        return frozenset()
    return frozenset(
        pod.slurm_node
        for pod in facts.pods
        if not facts.is_current(pod)
        and pod.worker.stage in _WITH_SLURMD
        and facts.slurm.listed(pod.slurm_node) is not None
    )


def update_times(node_set: NodeSetObject) -> UpdateTimes | None:
    """Return when its workers may be replaced; None if that is not scheduled."""
    update_strategy = node_set.spec.update_strategy
    if workers.strategy(node_set) != "ScheduledUpdate" or update_strategy is None:
        return None
    window = update_strategy.scheduled_update
    if window is None or window.start_time is None:
        return None
    length_s = min(float(parts.seconds_of(window.duration)), _LONGEST.total_seconds())
    return UpdateTimes(
        start=numbers.moment(window.start_time).replace(microsecond=0),
        duration=timedelta(seconds=length_s),
        flags=frozenset(flag.upper() for flag in window.flags or ()),
    )


def next_window(times: UpdateTimes, now: datetime) -> tuple[datetime, datetime] | None:
    """Return begin and end of the current or next window; None if there is no further one.

    Slurm uses slurmctld's time zone. In containers that is UTC, so this agrees with it.
    """
    length = times.minutes * _MINUTE
    every = next((step for flag, step in _EVERY.items() if flag in times.flags), None)
    if every is None:
        return (times.start, times.start + length) if now < times.start + length else None
    begin = times.start + max((now - length - times.start) // every + 1, 0) * every
    for _ in range(_WEEK):
        if _is_day(begin, times.flags):
            return begin, begin + length
        begin += every
    return None


def desired_reservation(
    times: UpdateTimes | None, *, name: str, nodes: Collection[str], now: datetime
) -> NodeReservation | None:
    """Return the reservation of the Slurm nodes whose workers wait for it; None for none, or if updates are not scheduled."""
    window = next_window(times, now) if times is not None and nodes else None
    if times is None or window is None:
        return None
    begin, end = window
    if begin < now:  # Slurm refuses one that began ten minutes ago: ask for the rest of it
        begin = end - (-((now - end) // _MINUTE)) * _MINUTE
    return NodeReservation(
        name=name, start=begin, end=end, nodes=frozenset(nodes), flags=_FLAGS | times.flags
    )


def step(current: NodeReservation | None, desired: NodeReservation | None) -> ReservationStep:
    """Return what turns the current reservation into the desired one.

    One that has begun cannot be moved, so it is deleted and created again. Nodes that no longer
    need it stay in it: they may be missing from the list for a moment only.
    """
    if current is None:
        return ReservationStep.SAVE if desired is not None else ReservationStep.NOTHING
    if desired is None or current.end != desired.end:
        return ReservationStep.DELETE
    if (current.flags ^ desired.flags) & _EVERY.keys():
        return ReservationStep.DELETE
    return ReservationStep.NOTHING if desired.nodes <= current.nodes else ReservationStep.EXTEND


def _is_day(moment: datetime, flags: frozenset[str]) -> bool:
    is_weekend = moment.weekday() >= _SATURDAY
    return not (("WEEKDAY" in flags and is_weekend) or ("WEEKEND" in flags and not is_weekend))
