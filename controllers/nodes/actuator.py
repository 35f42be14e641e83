"""Carries out the actions decided for a node: one request per action, no decisions."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import assert_never

import structlog

from bridge.domain.lifecycle.actions import OwnCause
from bridge.domain.nodes.actions import (
    Cordon,
    Create,
    Delete,
    Down,
    Drain,
    Forget,
    NodeAction,
    RemoveCondition,
    RemoveTaint,
    Rename,
    RenewPartitions,
    Respond,
    Resume,
    SetAddress,
    SetCondition,
    SetFeatures,
    SetTaint,
    SetTopology,
    SetWeight,
    Uncordon,
    Undrain,
    Withdraw,
)
from bridge.domain.nodes.decision import BUSY_AGAIN, NodeOutcome, NodePlan, NodeRefusal
from bridge.kube import patches, writes
from bridge.kube.patches import Patch
from bridge.slurm import jobs, nodes, updating
from bridge.slurm.nodes import Creation, Deletion
from bridge.slurm.respond import Responder
from controllers.nodes.slurm import SlurmNodes
from slurmclient.errors import Declined, SlurmError, TargetNotFound, TooOld
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.process.clock import Clock
from slurmruntime.process.events import EventRecorder, EventType
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import JOB_FINISHED, JOB_NOT_PENDING
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

OnSlurmNode = Drain | Down | Resume | Respond | SetFeatures | SetAddress | SetTopology | SetWeight
OnJob = Rename | Withdraw
OnKubeNode = SetTaint | RemoveTaint | Cordon | Uncordon | SetCondition | RemoveCondition


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePeers:
    """Those to whom the steps of nodes are written."""

    kube: KubeClient
    slurm: SlurmClient
    responder: Responder
    """Answers for the slurmds of external nodes."""
    events: EventRecorder


class NodeActuator:
    """Sends the requests about nodes to both systems."""

    def __init__(
        self,
        peers: NodePeers,
        kube_nodes: Cache[KubeNodeFacts],
        slurm_nodes: SlurmNodes,
        *,
        clock: Clock,
    ) -> None:
        self._kube = peers.kube
        self._slurm = peers.slurm
        self._responder = peers.responder
        self._kube_nodes = kube_nodes
        self._slurm_nodes = slurm_nodes
        self._events = peers.events
        self._clock = clock
        self._renewing = asyncio.Lock()
        self._respond_error = ""

    async def carry_out(self, plan: NodePlan) -> NodeOutcome:
        """Carry out a plan, one action after another.

        Raises:
            KubeError, SlurmError: an action failed, or its result is unknown.
        """
        for action in plan.rivals:
            await self.act(action)
        try:
            for action in plan.actions:
                if not await self.act(action):
                    return NodeOutcome(again=BUSY_AGAIN)
                _log.info("node.acted", action=type(action).__name__, reason=plan.reason)
        except (Declined, TooOld) as refusal:
            if plan.wanted is None:
                raise  # nothing that could be described in another way
            _log.warning("node.refused", error=str(refusal))
            return NodeOutcome(
                again=timedelta(),  # the next look tells of it in the node's condition
                refusal=NodeRefusal(spec=plan.wanted, words=refusal.words),
            )
        return NodeOutcome(again=plan.again)

    async def act(self, action: NodeAction) -> bool:
        """Carry out an action.

        Return False if Slurm is not ready for it, so that the other actions have to wait, too.

        Raises:
            KubeError, SlurmError: it failed, or the result is unknown.
        """
        match action:
            case Create(spec=spec):
                return await self._create(spec)
            case Delete(slurm_node=name):
                return await self._delete(name)
            case RenewPartitions(spare=spare):
                return await self._renew_partitions(spare)
            case Undrain(slurm_nodes=names):
                await self._undrain(names)
            case Rename() | Withdraw():
                await self._on_job(action)
            case Forget(slurm_node=name, cluster=cluster, changes=changes):
                async with updating.standing_in(self._slurm, [name], cluster):
                    for change in changes:
                        await self._on_job(change)
            case (
                SetTaint()
                | RemoveTaint()
                | Cordon()
                | Uncordon()
                | SetCondition()
                | RemoveCondition()
            ):
                await self._on_kube_node(action)
            case _:
                await self._on_slurm_node(action)
        return True

    # -- Slurm ------------------------------------------------------------------------------------

    async def _create(self, spec: SlurmNodeSpec) -> bool:
        """Create the node; return False if it exists, because it may belong to someone else."""
        try:
            return await nodes.create(self._slurm, spec) is Creation.CREATED
        finally:
            self._slurm_nodes.wrote(spec.name)

    async def _renew_partitions(self, spare: SlurmNodeSpec) -> bool:
        """Create and delete a spare node, one call at a time.

        A spare that an earlier run left behind is deleted like any unwanted node of ours, which has
        the same effect.
        """
        async with self._renewing:
            if await nodes.create(self._slurm, spare) is Creation.EXISTS:
                return False
            return await nodes.delete(self._slurm, spare.name) is not Deletion.BUSY

    async def _delete(self, name: SlurmNode) -> bool:
        if await nodes.delete(self._slurm, name) is Deletion.BUSY:
            return False
        self._slurm_nodes.deleted(name)
        return True

    async def _undrain(self, names: Sequence[SlurmNode]) -> None:
        try:
            await nodes.undrain(self._slurm, names)
        finally:
            for name in names:
                self._slurm_nodes.wrote(name)

    async def _on_slurm_node(self, action: OnSlurmNode) -> None:
        try:
            await self._change(action)
        finally:
            self._slurm_nodes.wrote(action.slurm_node)

    async def _change(self, action: OnSlurmNode) -> None:
        slurm = self._slurm
        match action:
            case Drain(slurm_node=name, reason=reason):
                await nodes.drain(slurm, name, reason)
            case Down(slurm_node=name, reason=reason):
                await nodes.down(slurm, name, reason)
            case Resume(slurm_node=name):
                await nodes.resume(slurm, name)
            case Respond(record=record):
                await self._respond(record)
            case SetFeatures(slurm_node=name, features=features):
                await nodes.set_features(slurm, name, features)
            case SetAddress(slurm_node=name, address=address):
                await nodes.set_address(slurm, name, address)
            case SetTopology(slurm_node=name, topology=topology):
                await nodes.set_topology(slurm, name, topology)
            case SetWeight(slurm_node=name, weight=weight):
                await nodes.set_weight(slurm, name, weight)
            case unreachable:
                assert_never(unreachable)

    async def _respond(self, record: SlurmNodeFacts) -> None:
        """Answer for the node's slurmd; a failure is only logged, because the next list shows the result."""
        try:
            now_s = int(self._clock.now().timestamp())
            await self._responder.respond(record, now_s)
        except SlurmError as error:
            if str(error) != self._respond_error:
                _log.warning("node.unheard", error=str(error))
            self._respond_error = str(error)

    async def _on_job(self, action: OnJob) -> None:
        """Act on a job; nothing is needed if it has gone, started or ended in the meantime."""
        try:
            match action:
                case Rename(job_id=job_id, sluid=sluid):
                    await jobs.set_node_lists(
                        self._slurm,
                        job_id,
                        sluid=sluid,
                        required=action.required_nodes,
                        excluded=action.excluded_nodes,
                    )
                case Withdraw(job_id=job_id, sluid=sluid):
                    job = await jobs.verified(self._slurm, job_id, None, sluid=sluid)
                    if job is not None:
                        mark = partial(replace, cause=OwnCause.NODE_REMOVED)
                        await jobs.cancel_for(self._slurm, job, mark)
                case unreachable:
                    assert_never(unreachable)
        except TargetNotFound:
            return
        except Declined as refusal:
            if refusal.error_number not in (JOB_NOT_PENDING, JOB_FINISHED):
                raise

    # -- Kubernetes -------------------------------------------------------------------------------

    async def _on_kube_node(self, action: OnKubeNode) -> None:
        """Patch the node as the previous patch left it."""
        kube_node = self._kube_nodes.get(action.kube_node)
        if kube_node is None:
            return  # it was deleted in the meantime
        match action:
            case SetTaint(taint=taint):
                await self._patch(kube_node, patches.taint(kube_node, taint))
            case RemoveTaint(key=key):
                await self._patch(kube_node, patches.untaint(kube_node, key))
            case Cordon(reason=reason):
                await self._patch(kube_node, patches.cordon(kube_node, reason))
            case Uncordon():
                await self._patch(kube_node, patches.uncordon(kube_node))
            case SetCondition(condition=condition, event=kind):
                patch = patches.node_condition(kube_node, condition, self._clock.now())
                await self._patch_status(kube_node, patch)
                if kind:
                    await self._events.record(
                        kube_node.about,
                        EventType(kind),
                        action="SlurmState",
                        reason=condition.reason,
                        note=condition.message,
                    )
            case RemoveCondition(type=kind):
                await self._patch_status(kube_node, patches.remove_node_condition(kube_node, kind))
            case unreachable:
                assert_never(unreachable)

    async def _patch(self, kube_node: KubeNodeFacts, patch: Patch) -> None:
        written = await writes.patch_node(self._kube, kube_node, patch)
        self._kube_nodes.observe(written, base=kube_node.resource_version)

    async def _patch_status(self, kube_node: KubeNodeFacts, patch: Patch) -> None:
        written = await writes.patch_node_status(self._kube, kube_node, patch)
        self._kube_nodes.observe(written, base=kube_node.resource_version)
