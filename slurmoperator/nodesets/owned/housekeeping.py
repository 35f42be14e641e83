"""Housekeeping after the workers: pod conditions, topology, reservations, unused volumes and nodes."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from slurmclient.errors import SlurmError
from slurmoperator.nodesets import planning
from slurmoperator.nodesets.gathering import NodeSetGathering
from slurmoperator.nodesets.owned import records, topology
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.owned.deleted_claims import ClaimDeletions
from slurmoperator.nodesets.owned.pod_conditions import PodConditions
from slurmoperator.nodesets.owned.topology import WorkerTopology
from slurmoperator.nodesets.owned.windows import UpdateWindows
from slurmoperator.nodesets.planning import NodeSetSituation, Worker
from slurmoperator.nodesets.status import ReservationStatus
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.values.errors import PEER_ERRORS, PeerError


@dataclass(frozen=True, slots=True, kw_only=True)
class HousekeepingResult:
    """The outcome of one task, or of all of them."""

    failures: tuple[PeerError, ...] = ()
    notes: tuple[str, ...] = ()
    """Texts about requests that Slurm refuses."""
    deleted_claims: tuple[str, ...] = ()
    """Texts about workers' PVCs that are being deleted."""
    delays: tuple[timedelta, ...] = ()
    """When more is due without an event."""
    reservation: ReservationStatus | None = None
    is_reservation_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeping:
    """Runs these tasks during one term of leadership; each fails by itself."""

    gathering: NodeSetGathering
    views: WorkerViews
    claims: WorkerClaims
    deleted_claims: ClaimDeletions
    pod_conditions: PodConditions
    topology: WorkerTopology
    windows: UpdateWindows

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self.claims.forget(uid)
        self.deleted_claims.forget(uid)
        self.windows.forget(uid)

    async def run(
        self, situation: NodeSetSituation, workers: Collection[Worker], *, is_sure: bool
    ) -> HousekeepingResult:
        """Run all tasks. Nothing is deleted unless it is certain which workers are desired (`is_sure`)."""
        parts = [
            await self._report_states(situation),
            await self._move(situation),
            await self._check_volumes(situation),
        ]
        window = HousekeepingResult()
        if is_sure or situation.is_leaving:
            window = await self._keep_window(situation)
            parts.append(window)
        if is_sure and not situation.is_leaving:
            parts.append(await self._delete_volumes(situation, workers))
            parts.append(await self._delete_nodes(situation.node_set))
        return HousekeepingResult(
            failures=tuple(failure for part in parts for failure in part.failures),
            notes=tuple(note for part in parts for note in part.notes),
            deleted_claims=tuple(text for part in parts for text in part.deleted_claims),
            delays=tuple(delay for part in parts for delay in part.delays),
            reservation=window.reservation,
            is_reservation_known=window.is_reservation_known,
        )

    async def clean_up(self, node_set: NodeSetObject) -> None:
        """Remove the reservation of a NodeSet that goes, unless the state of Slurm is unknown.

        Raises:
            SlurmError: that failed, or the outcome is unknown.
        """
        view = self.views.of(node_set.controller)
        if view is not None and view.trouble == "":
            await self.windows.remove(view.slurm, node_set)

    async def _report_states(self, situation: NodeSetSituation) -> HousekeepingResult:
        listed = self.gathering.listed(situation.node_set)
        if listed is None:
            return HousekeepingResult()  # the last conditions stay
        report = await self.pod_conditions.report(
            situation.pods,
            listed,
            situation.now,
            is_guarded=situation.node_set.spec.workload_disruption_protection,
        )
        return HousekeepingResult(
            failures=tuple(report.failures), delays=_delays(report.requeue_after)
        )

    async def _move(self, situation: NodeSetSituation) -> HousekeepingResult:
        view = self.views.of(situation.node_set.controller)
        listed = self.gathering.listed(situation.node_set)
        if view is None or listed is None:
            return HousekeepingResult()
        moves = topology.moves(situation.pods, self.gathering.topology, listed)
        return HousekeepingResult(notes=await self.topology.move(view.slurm, moves))

    async def _keep_window(self, situation: NodeSetSituation) -> HousekeepingResult:
        node_set = situation.node_set
        view, listed = self.views.of(node_set.controller), self.gathering.listed(node_set)
        if view is None or listed is None:
            return HousekeepingResult()
        waiting = planning.waiting_for_window(situation)
        known = frozenset(node for node in waiting if listed(node) is not None)
        try:
            window = await self.windows.keep(view.slurm, node_set, known, situation.now)
        except SlurmError as failure:
            return HousekeepingResult(failures=(failure,))
        return HousekeepingResult(
            delays=_delays(window.requeue_after),
            reservation=window.reservation,
            is_reservation_known=True,
        )

    async def _check_volumes(self, situation: NodeSetSituation) -> HousekeepingResult:
        try:
            texts, requeue_after = await self.deleted_claims.of(
                situation.node_set, situation.pods, situation.now
            )
        except PEER_ERRORS as failure:
            return HousekeepingResult(failures=(failure,))
        return HousekeepingResult(deleted_claims=texts, delays=_delays(requeue_after))

    async def _delete_volumes(
        self, situation: NodeSetSituation, workers: Collection[Worker]
    ) -> HousekeepingResult:
        needed = frozenset(worker.key for worker in workers if isinstance(worker.key, int))
        try:
            requeue_after = await self.claims.delete_unneeded(
                situation.node_set, needed=needed, now=situation.now
            )
        except PEER_ERRORS as failure:
            return HousekeepingResult(failures=(failure,))
        return HousekeepingResult(delays=_delays(requeue_after))

    async def _delete_nodes(self, node_set: NodeSetObject) -> HousekeepingResult:
        view = self.views.of(node_set.controller)
        if view is None:
            return HousekeepingResult()
        try:
            nodes = self.gathering.nodes_to_delete(node_set)
            return HousekeepingResult(notes=await records.delete_nodes(view.slurm, nodes))
        except SlurmError as failure:
            return HousekeepingResult(failures=(failure,))


def _delays(requeue_after: timedelta | None) -> tuple[timedelta, ...]:
    return () if requeue_after is None else (requeue_after,)
