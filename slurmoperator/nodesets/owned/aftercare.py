"""What is seen to after the workers themselves: what their pods tell, where Slurm has them, and what nobody needs any more."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from slurmoperator.nodesets import planning
from slurmoperator.nodesets.gathering import NodeSetGathering
from slurmoperator.nodesets.owned import records, topology
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.owned.deleted_claims import DeletedClaims
from slurmoperator.nodesets.owned.told_states import ToldStates
from slurmoperator.nodesets.owned.topology import WorkerTopology
from slurmoperator.nodesets.owned.windows import UpdateWindows
from slurmoperator.nodesets.planning import NodeSetSituation, PlannedWorker
from slurmoperator.nodesets.status import ToldReservation
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.slurm.errors import SlurmError
from slurmruntime.values.errors import PeerError


@dataclass(frozen=True, slots=True, kw_only=True)
class CaredFor:
    """What became of it."""

    failures: tuple[PeerError, ...] = ()
    notes: tuple[str, ...] = ()
    """What Slurm refuses, in words."""
    deleted_claims: tuple[str, ...] = ()
    """Which claims of workers are being deleted, in words."""
    looks: tuple[timedelta, ...] = ()
    """When there is more to do although nothing happens."""
    reservation: ToldReservation | None = None
    is_reservation_known: bool = False


class Aftercare:
    """Sees to it, during one term of leadership; each part fails by itself."""

    def __init__(
        self,
        *,
        gathering: NodeSetGathering,
        views: WorkerViews,
        claims: WorkerClaims,
        deleted_claims: DeletedClaims,
        told_states: ToldStates,
        topology: WorkerTopology,
        windows: UpdateWindows,
    ) -> None:
        self._gathering = gathering
        self._views = views
        self._claims = claims
        self._deleted_claims = deleted_claims
        self._told_states = told_states
        self._topology = topology
        self._windows = windows

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self._claims.forget(uid)
        self._deleted_claims.forget(uid)
        self._windows.forget(uid)

    async def see_to(
        self, situation: NodeSetSituation, planned: Collection[PlannedWorker], *, is_sure: bool
    ) -> CaredFor:
        """See to all of it.

        Args:
            situation: of the NodeSet.
            planned: the workers that are there or are to be.
            is_sure: it is not in doubt who is wanted: nothing is deleted otherwise.
        """
        parts = [
            await self._tell_pods(situation),
            await self._move(situation),
            await self._look_at_volumes(situation),
        ]
        window = CaredFor()
        if is_sure or situation.is_leaving:
            window = await self._keep_window(situation)
            parts.append(window)
        if is_sure and not situation.is_leaving:
            parts.append(await self._delete_volumes(situation, planned))
            parts.append(await self._forget_nodes(situation.node_set))
        return CaredFor(
            failures=tuple(failure for part in parts for failure in part.failures),
            notes=tuple(note for part in parts for note in part.notes),
            deleted_claims=tuple(
                deleted_claim for part in parts for deleted_claim in part.deleted_claims
            ),
            looks=tuple(look for part in parts for look in part.looks),
            reservation=window.reservation,
            is_reservation_known=window.is_reservation_known,
        )

    async def leave(self, node_set: NodeSetObject) -> None:
        """Take back what is in Slurm for a NodeSet without workers, before it goes; not if Slurm is not known.

        Raises:
            SlurmError: that failed, or nobody knows.
        """
        view = self._views.of(node_set.controller)
        if view is not None and view.trouble == "":
            await self._windows.remove(view.slurm, node_set)

    async def _tell_pods(self, situation: NodeSetSituation) -> CaredFor:
        listed = self._gathering.listed(situation.node_set)
        if listed is None:
            return CaredFor()  # the old word holds
        telling = await self._told_states.tell(
            situation.pods,
            listed,
            situation.now,
            is_guarded=situation.node_set.spec.workload_disruption_protection,
        )
        return CaredFor(failures=tuple(telling.failures), looks=_known(telling.look_again))

    async def _move(self, situation: NodeSetSituation) -> CaredFor:
        """Put workers where their Kubernetes nodes are."""
        view = self._views.of(situation.node_set.controller)
        listed = self._gathering.listed(situation.node_set)
        if view is None or listed is None:
            return CaredFor()
        wanted = topology.moves(situation.pods, self._gathering.topology, listed)
        return CaredFor(notes=await self._topology.move(view.slurm, wanted))

    async def _keep_window(self, situation: NodeSetSituation) -> CaredFor:
        """Keep the reservation in which workers are replaced, if that is scheduled."""
        node_set = situation.node_set
        view, listed = self._views.of(node_set.controller), self._gathering.listed(node_set)
        if view is None or listed is None:
            return CaredFor()
        waiting = planning.waiting_for_window(situation)
        known = frozenset(each for each in waiting if listed(each) is not None)
        try:
            kept = await self._windows.keep(view.slurm, node_set, known, situation.now)
        except SlurmError as failure:
            return CaredFor(failures=(failure,))
        return CaredFor(
            looks=_known(kept.look_again), reservation=kept.told, is_reservation_known=True
        )

    async def _look_at_volumes(self, situation: NodeSetSituation) -> CaredFor:
        try:
            deleted, look_again = await self._deleted_claims.of(
                situation.node_set, situation.pods, situation.now
            )
        except PeerError as failure:
            return CaredFor(failures=(failure,))
        return CaredFor(deleted_claims=deleted, looks=_known(look_again))

    async def _delete_volumes(
        self, situation: NodeSetSituation, planned: Collection[PlannedWorker]
    ) -> CaredFor:
        """Delete the volumes of workers that were scaled in."""
        needed = frozenset(each.key for each in planned if isinstance(each.key, int))
        try:
            look_again = await self._claims.delete_unneeded(
                situation.node_set, needed=needed, now=situation.now
            )
        except PeerError as failure:
            return CaredFor(failures=(failure,))
        return CaredFor(looks=_known(look_again))

    async def _forget_nodes(self, node_set: NodeSetObject) -> CaredFor:
        """Delete what Slurm has of workers whose Kubernetes nodes are gone."""
        view = self._views.of(node_set.controller)
        if view is None:
            return CaredFor()
        try:
            return CaredFor(
                notes=await records.forget(view.slurm, self._gathering.forgotten(node_set))
            )
        except SlurmError as failure:
            return CaredFor(failures=(failure,))


def _known(look_again: timedelta | None) -> tuple[timedelta, ...]:
    return () if look_again is None else (look_again,)
