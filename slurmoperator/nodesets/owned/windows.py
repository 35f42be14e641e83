"""The reservation in which the workers of a NodeSet are replaced, if that is scheduled (`ScheduledUpdate`).

A condition says that there may be one before it is made, so that every leader looks for it until it is gone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from bridge.slurm import nodes
from slurmoperator.nodesets import names, planning
from slurmoperator.nodesets.status import ToldReservation
from slurmoperator.objects import parts
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.workers import windows
from slurmoperator.workers.windows import ReservationStep, UpdateTimes
from slurmruntime.model.nodes import NodeReservation
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import Rejected
from slurmruntime.values import faults, numbers

_log = structlog.get_logger(__name__)

_BELIEVED_S: Final = 10.0
"""How long a reservation is believed to be as it was: a NodeSet is looked at whenever one of its pods changes."""
_REFUSED_S: Final = 60.0
_SOON: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(days=366)
_LONGEST_WORDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWindow:
    """What became of a reservation."""

    told: ToldReservation | None = None
    look_again: timedelta | None = None


class UpdateWindows:
    """Keeps the reservations, during one term of leadership."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: dict[str, tuple[NodeReservation | None, float, KeptWindow]] = {}
        """By the NodeSet's uid: what was needed, until when it is believed to be as it was, and what became of it."""

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self._kept.pop(uid, None)

    async def keep(
        self, slurm: SlurmClient, node_set: NodeSetObject, waiting: frozenset[str], now: datetime
    ) -> KeptWindow:
        """Bring the reservation to what is needed, and return what is to be told of it.

        Args:
            slurm: where it is made.
            node_set: whose workers.
            waiting: the Slurm nodes of those that wait for it.
            now: by the wall clock.

        Raises:
            SlurmError: nobody knows how it stands.
        """
        uid, name = node_set.metadata.uid, names.reservation(node_set.metadata.name)
        may_be_there = any(
            condition.type == names.RESERVED for condition in node_set.status.conditions
        )
        if not waiting and not may_be_there:
            return KeptWindow()
        times = _times(node_set)
        needed = windows.wanted(times, name=name, nodes=waiting, now=now)
        if needed is not None and not may_be_there:
            return KeptWindow(told=_creating(name), look_again=_SOON)
        before, until_s, kept = self._kept.get(uid, (None, 0.0, KeptWindow()))
        if before == needed and self._monotonic() < until_s:
            return kept
        self.forget(uid)
        believed_s = _BELIEVED_S
        try:
            found = await self._step(slurm, name, needed)
        except Rejected as error:
            words = faults.shortened(str(error), _LONGEST_WORDS)
            text = f"Slurm refuses reservation {name}: {words}"
            told = ToldReservation(is_there=False, reason="Refused", text=text)
            kept, believed_s = KeptWindow(told=told), _REFUSED_S
        else:
            if needed is not None and found is None:
                return KeptWindow(told=_creating(name), look_again=_SOON)
            kept = KeptWindow(told=_told(found, times, waiting))
        self._kept[uid] = (needed, self._monotonic() + believed_s, kept)
        return kept

    async def remove(self, slurm: SlurmClient, node_set: NodeSetObject) -> None:
        """Delete the reservation of a NodeSet that goes, if it may have one.

        Raises:
            SlurmError: it was not deleted, or nobody knows.
        """
        if any(condition.type == names.RESERVED for condition in node_set.status.conditions):
            await nodes.unreserve(slurm, names.reservation(node_set.metadata.name))

    async def _step(
        self, slurm: SlurmClient, name: str, needed: NodeReservation | None
    ) -> NodeReservation | None:
        """Do one thing; return the reservation that there is then."""
        found = await nodes.reservation(slurm, name)
        match windows.step(found, needed):
            case ReservationStep.SAVE if needed is not None:
                await nodes.reserve(slurm, needed)
                _log.info("window.reserved", reservation=name, start=str(needed.start))
                return needed
            case ReservationStep.EXTEND if needed is not None and found is not None:
                whole = found.nodes | needed.nodes
                await nodes.extend_reservation(slurm, name, whole)
                _log.info("window.extended", reservation=name, nodes=len(whole))
                return found
            case ReservationStep.DELETE:
                await nodes.unreserve(slurm, name)
                _log.info("window.unreserved", reservation=name)
                return None
            case _:
                return found


def _times(node_set: NodeSetObject) -> UpdateTimes | None:
    """Return when its workers may be replaced; None if that is not scheduled."""
    given = node_set.spec.update_strategy
    if planning.strategy(node_set) != "ScheduledUpdate" or given is None:
        return None
    window = given.scheduled_update
    if window is None or window.start_time is None:
        return None
    length_s = min(float(parts.seconds_of(window.duration)), _LONGEST.total_seconds())
    return UpdateTimes(
        start=numbers.moment(window.start_time).replace(microsecond=0),
        duration=timedelta(seconds=length_s),
        flags=frozenset(flag.upper() for flag in window.flags or ()),
    )


def _creating(name: str) -> ToldReservation:
    return ToldReservation(is_there=False, reason="Creating", text=f"reservation {name} is made")


def _told(
    found: NodeReservation | None, times: UpdateTimes | None, waiting: frozenset[str]
) -> ToldReservation | None:
    if found is not None:
        text = f"reservation {found.name} from {found.start.isoformat()} to {found.end.isoformat()}"
        return ToldReservation(is_there=True, reason="Reserved", text=text)
    if times is None or not waiting:
        return None
    text = (
        f"the time from {times.start.isoformat()} for {times.minutes} minutes is over, and {len(waiting)} workers have"
        " another template: set another spec.updateStrategy.scheduledUpdate.startTime"
    )
    return ToldReservation(is_there=False, reason="Over", text=text)
