"""When the workers of a NodeSet with another template may be replaced, if that is scheduled: in a reservation of Slurm's.

The reservation keeps jobs off their nodes from its beginning, and Slurm starts none before it that might not be over by then.
Whoever is in it is replaced as in a rolling update: a job that still runs then is waited for.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slurmruntime.model.nodes import NodeReservation

_MINUTE: Final = timedelta(minutes=1)
_FLAGS: Final = frozenset({"MAINT", "IGNORE_JOBS"})
"""No job starts there, not even one that the reservation would let in; those that run go on."""
_EVERY: Final[Mapping[str, timedelta]] = {
    "HOURLY": timedelta(hours=1),
    "DAILY": timedelta(days=1),
    "WEEKDAY": timedelta(days=1),
    "WEEKEND": timedelta(days=1),
    "WEEKLY": timedelta(weeks=1),
}
"""Flags with which Slurm makes a reservation again, and when."""
_SATURDAY: Final = 5
_WEEK: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTimes:
    """When an update may take place."""

    start: datetime
    duration: timedelta
    flags: frozenset[str] = frozenset()
    """In capitals."""

    @property
    def minutes(self) -> int:
        """Its length, in the whole minutes that Slurm counts in."""
        return max(-(-self.duration // _MINUTE), 1)


class ReservationStep(enum.Enum):
    """What to do about a reservation."""

    NOTHING = "nothing"
    SAVE = "save"
    EXTEND = "extend"
    """Give it more nodes: those that it has stay reserved meanwhile, and if Slurm refuses."""
    DELETE = "delete"


def opening(times: UpdateTimes, now: datetime) -> tuple[datetime, datetime] | None:
    """Return begin and end of the window that is open or comes next; None if there is none any more.

    Slurm goes by the clock of slurmctld's zone, and so does this in containers, whose zone is UTC.
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


def wanted(
    times: UpdateTimes | None, *, name: str, nodes: Collection[str], now: datetime
) -> NodeReservation | None:
    """Return the reservation that there is to be; None for none.

    Args:
        times: when; None if updates are not scheduled.
        name: the reservation's.
        nodes: the Slurm nodes of all workers that wait for it.
        now: by the wall clock. Slurm refuses a reservation that began ten minutes ago: what is left of it is asked for.
    """
    found = opening(times, now) if times is not None and nodes else None
    if times is None or found is None:
        return None
    begin, end = found
    if begin < now:
        begin = end - (-((now - end) // _MINUTE)) * _MINUTE
    return NodeReservation(
        name=name,
        start=begin,
        end=end,
        nodes=frozenset(nodes),
        flags=_FLAGS | times.flags,
    )


def step(found: NodeReservation | None, needed: NodeReservation | None) -> ReservationStep:
    """Return what brings Slurm's reservation to what is needed; one that has begun cannot be moved, so it is made anew.

    Nodes that need it no more keep it: nobody knows whether they have gone, or are not listed for a moment.
    """
    if found is None:
        return ReservationStep.SAVE if needed is not None else ReservationStep.NOTHING
    if needed is None or found.end != needed.end:
        return ReservationStep.DELETE
    if (found.flags ^ needed.flags) & _EVERY.keys():
        return ReservationStep.DELETE
    return ReservationStep.NOTHING if needed.nodes <= found.nodes else ReservationStep.EXTEND


def _is_day(moment: datetime, flags: frozenset[str]) -> bool:
    is_weekend = moment.weekday() >= _SATURDAY
    return not (("WEEKDAY" in flags and is_weekend) or ("WEEKEND" in flags and not is_weekend))
