"""The reservation in which a NodeSet's workers are replaced, if scheduled (`ScheduledUpdate`).

A condition announces it before it is made, so that every leader looks for it until it is gone.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from bridge.slurm import nodes
from slurmclient.errors import Declined
from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan.look import Outcome
from slurmoperator.nodesets.windows import reservations
from slurmoperator.nodesets.windows.reservations import ReservationStep, UpdateTimes
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.parts import UntimedCondition, condition_of
from slurmoperator.recent import RecentResults
from slurmruntime.model.nodes import NodeReservation
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults

_log = structlog.get_logger(__name__)

_BELIEVED: Final = timedelta(seconds=10)
"""How long a reservation is assumed unchanged: each change of a pod reconciles its NodeSet."""
_REFUSED: Final = timedelta(seconds=60)
_SOON: Final = timedelta(seconds=1)
_LONGEST_MESSAGE: Final = 300


class UpdateWindows:
    """Maintains the reservations, during one term of leadership."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._states = RecentResults[NodeReservation | None, Outcome](monotonic)
        """By the NodeSet's uid, for the desired reservation."""

    async def keep(
        self, slurm: SlurmClient, node_set: NodeSetObject, waiting: frozenset[str], now: datetime
    ) -> Outcome:
        """Create, extend or delete the reservation as needed, and return its state.

        Args:
            waiting: the Slurm nodes of the workers that wait for it.

        Raises:
            SlurmError: its state is unknown.
        """
        uid, name = node_set.metadata.uid, names.reservation(node_set.metadata.name)
        may_exist = condition_of(node_set.status.conditions, names.RESERVED) is not None
        if not waiting and not may_exist:
            return _known(None)
        times = reservations.update_times(node_set)
        desired = reservations.desired_reservation(times, name=name, nodes=waiting, now=now)
        if desired is not None and not may_exist:
            return _known(_creating(name), _SOON)
        if state := self._states.of(uid, desired):
            return state
        lasts = _BELIEVED
        try:
            current = await self._step(slurm, name, desired)
        except Declined as error:
            message = faults.shortened(str(error), _LONGEST_MESSAGE)
            text = f"Slurm refuses reservation {name}: {message}"
            state, lasts = _known((names.RESERVED, "False", "Refused", text)), _REFUSED
        else:
            if desired is not None and current is None:
                return _known(_creating(name), _SOON)
            state = _known(_status(current, times, waiting))
        self._states.put(uid, desired, state, lasts=lasts)
        return state

    async def remove(self, slurm: SlurmClient, node_set: NodeSetObject) -> None:
        """Delete the reservation of a NodeSet that is being deleted, if it may have one.

        Raises:
            SlurmError: it was not deleted, or the outcome is unknown.
        """
        if condition_of(node_set.status.conditions, names.RESERVED):
            await nodes.unreserve(slurm, names.reservation(node_set.metadata.name))

    async def _step(
        self, slurm: SlurmClient, name: str, desired: NodeReservation | None
    ) -> NodeReservation | None:
        current = await nodes.reservation(slurm, name)
        match reservations.step(current, desired):
            case ReservationStep.SAVE if desired is not None:
                await nodes.reserve(slurm, desired)
                _log.info("window.reserved", reservation=name, start=str(desired.start))
                return desired
            case ReservationStep.EXTEND if desired is not None and current is not None:
                extended = current.nodes | desired.nodes
                await nodes.extend_reservation(slurm, name, extended)
                _log.info("window.extended", reservation=name, nodes=len(extended))
                return current
            case ReservationStep.DELETE:
                await nodes.unreserve(slurm, name)
                _log.info("window.unreserved", reservation=name)
                return None
            case _:
                return current


def _known(reservation: UntimedCondition | None, *delays: timedelta) -> Outcome:
    return Outcome(reservation=reservation, is_reservation_known=True, delays=delays)


def _creating(name: str) -> UntimedCondition:
    return names.RESERVED, "False", "Creating", f"creating reservation {name}"


def _status(
    current: NodeReservation | None, times: UpdateTimes | None, waiting: frozenset[str]
) -> UntimedCondition | None:
    if current is not None:
        start, end = current.start.isoformat(), current.end.isoformat()
        text = f"reservation {current.name} from {start} to {end}"
        return names.RESERVED, "True", "Reserved", text
    if times is None or not waiting:
        return None
    text = (
        f"the window of {times.minutes} minutes from {times.start.isoformat()} is over, but {len(waiting)} workers"
        " still have another template: set another spec.updateStrategy.scheduledUpdate.startTime"
    )
    return names.RESERVED, "False", "Over", text
