"""Carries out the plan for a NodeSet, which decides everything. Every action is idempotent and may be interrupted anywhere."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, assert_never

import structlog

from bridge.slurm import nodes
from slurmclient.errors import LostReply
from slurmoperator.nodesets import records, worker_bodies, worker_pods
from slurmoperator.nodesets.plan.look import NodeSetFacts, Outcome
from slurmoperator.nodesets.plan.planning import (
    ActOnWorkers,
    CheckVolumes,
    CreateWorkers,
    DeleteRecords,
    DeleteVolumes,
    KeepReservation,
    MoveWorkers,
    NewWorker,
    NodeSetPlan,
    PlanStep,
    ReportStates,
)
from slurmoperator.nodesets.plan.workers import Worker
from slurmoperator.nodesets.pod_conditions.reporting import PodConditions
from slurmoperator.nodesets.preparation import WorkerTemplates
from slurmoperator.nodesets.slurm_view import WorkerView
from slurmoperator.nodesets.topology import WorkerTopology
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.volumes.claims import WorkerClaims
from slurmoperator.nodesets.volumes.deleted_claims import ClaimDeletions
from slurmoperator.nodesets.windows.keeping import UpdateWindows
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.recent import RecentResults
from slurmoperator.workers.actions import (
    CreateWorker,
    DeleteWorker,
    DrainWorker,
    ProtectWorker,
    ReleaseWorker,
    UndrainWorker,
    WorkerAction,
)
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PEER_ERRORS, PeerError
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_AT_ONCE: Final = 16

PATIENCE: Final = timedelta(seconds=10)
"""A watch later than this may have lost the event: reconcile again."""

_Body = tuple[WorkerKey, str, Mapping[str, Any]]
"""A worker, the full name of its pod, and that pod."""


class NodeSetActuator:
    """Carries out the plans of one leader."""

    def __init__(
        self,
        kube: KubeClient,
        pods: Cache[WorkerPodObject],
        views: WorkerViews,
        templates: WorkerTemplates,
        monotonic: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._pods = pods
        self._views = views
        self._templates = templates
        self._written = RecentResults[str, bool](monotonic)
        """By the name of a pod, for the version that was written to: until the watch shows its successor, it is not written again."""
        self._claims = WorkerClaims(kube, monotonic)
        self._deleted_claims = ClaimDeletions(kube, monotonic)
        self._pod_conditions = PodConditions(kube, pods, monotonic)
        self._topology = WorkerTopology(monotonic)
        self._windows = UpdateWindows(monotonic)

    async def act(self, facts: NodeSetFacts, plan: NodeSetPlan, outcome: Outcome) -> Outcome:
        """Carry out a plan after its preparation, whose outcome this is, step by step; a step that fails does not stop the others."""
        for step in plan.steps:
            try:
                outcome += await self._carry_out(step, facts)
            except PEER_ERRORS as failure:
                outcome += Outcome(failures=(failure,))
        return outcome

    async def clean_up(self, node_set: NodeSetObject) -> None:
        """Remove what a deleted NodeSet without workers leaves: its volumes, and its reservation unless the state of Slurm is unknown.

        Raises:
            PeerError: that failed, or the outcome is unknown.
        """
        view = self._views.of(node_set.controller)
        if view is not None and view.trouble == "":
            await self._windows.remove(view.slurm, node_set)
        await self._claims.delete_all(node_set)

    async def _carry_out(self, step: PlanStep, facts: NodeSetFacts) -> Outcome:
        node_set, now = facts.node_set, facts.now
        match step:
            case ActOnWorkers(workers=busy):
                return await self._act_on_workers(busy, node_set.controller)
            case CreateWorkers(workers=new):
                return await self._create_workers(facts, new)
            case ReportStates(changes=changes):
                return await self._pod_conditions.report(changes, now)
            case MoveWorkers(moves=moves):
                view = self._views.opened(node_set.controller)
                return Outcome(notes=await self._topology.move(view.slurm, moves))
            case CheckVolumes(pods=pods):
                versions = [pod.version for pod in pods]
                return await self._deleted_claims.of(node_set, versions)
            case KeepReservation(waiting=waiting):
                view = self._views.opened(node_set.controller)
                return await self._windows.keep(view.slurm, node_set, waiting, now)
            case DeleteVolumes(needed=needed):
                return await self._claims.delete_unneeded(node_set, needed=needed, now=now)
            case DeleteRecords(nodes=stale):
                view = self._views.opened(node_set.controller)
                return Outcome(notes=await records.delete_nodes(view.slurm, stale))
            case _:
                assert_never(step)

    async def _act_on_workers(self, busy: Sequence[Worker], controller: str) -> Outcome:
        """Carry out the actions of existing workers; a failure affects only its own worker."""
        failures: list[PeerError] = []
        for start in range(0, len(busy), _AT_ONCE):
            chunk = busy[start : start + _AT_ONCE]
            failures += await _together(self._act_on(worker, controller) for worker in chunk)
        return Outcome(failures=tuple(failures))

    async def _create_workers(self, facts: NodeSetFacts, workers: Iterable[NewWorker]) -> Outcome:
        bodies: list[_Body] = []
        for worker in workers:
            try:
                body = self._templates(facts.node_set, worker.key, facts.prepared.key_step)
            except faults.Refusal as error:
                return Outcome(refused=error.text)
            pod = worker_bodies.pod_body(
                facts.node_set, worker, body, digest=facts.prepared.revision
            )
            name = f"{facts.node_set.metadata.namespace}/{pod['metadata']['name']}"
            bodies.append((worker.key, name, pod))
        new = [body for body in bodies if not self._written.of(body[1], "")]
        failures = await self._create(facts.node_set, new)
        delays = (PATIENCE,) if len(new) < len(bodies) else ()
        return Outcome(failures=tuple(failures), delays=delays)

    async def _create(self, node_set: NodeSetObject, bodies: list[_Body]) -> list[PeerError]:
        """Create pods, more at a time with each success: an error common to all is met only once."""
        at_once = 1
        while bodies:
            chunk, bodies = bodies[:at_once], bodies[at_once:]
            failures = await _together(
                self._create_one(node_set, key, name, body) for key, name, body in chunk
            )
            if failures:
                return failures
            at_once = min(at_once * 2, _AT_ONCE)
        return []

    async def _create_one(
        self, node_set: NodeSetObject, key: WorkerKey, name: str, body: Mapping[str, Any]
    ) -> None:
        await self._claims.create(node_set, key)
        namespace = node_set.metadata.namespace
        await worker_pods.create(self._kube, namespace, body, owner_uid=node_set.metadata.uid)
        self._written.put(name, "", result=True, lasts=PATIENCE)
        _log.info("worker.created", pod=name)

    async def _act_on(self, worker: Worker, controller: str) -> None:
        """Carry out one worker's actions in order, stopping at the first that fails."""
        pod = worker.pod.version if worker.pod else None
        if pod is None:
            return
        meta = pod.metadata
        if self._written.of(meta.full_name, meta.resource_version) is not None:
            return
        for action in worker.decision.actions:
            await self._act_once(worker, pod, action, controller)
            _log.info(
                "worker.acted",
                action=type(action).__name__,
                pod=meta.full_name,
                reason=worker.decision.reason,
            )

    async def _act_once(
        self, worker: Worker, pod: WorkerPodObject, action: WorkerAction, controller: str
    ) -> None:
        match action:
            case CreateWorker():
                pass  # `_create_workers` does this for all missing workers
            case ProtectWorker():
                after = await worker_pods.protect(self._kube, pod)
                self._pods.observe(after, base=pod.metadata.resource_version)
            case ReleaseWorker(uid=uid, resource_version=version):
                after = await worker_pods.release(self._kube, pod, uid=uid, version=version)
                self._pods.observe(after, base=pod.metadata.resource_version)
            case DeleteWorker(uid=uid, resource_version=version):
                await worker_pods.delete(self._kube, pod, uid=uid, version=version)
                self._written.put(pod.metadata.full_name, version, result=True, lasts=PATIENCE)
            case DrainWorker(reason=reason):
                view = self._views.opened(controller)
                change = nodes.drain(view.slurm, SlurmNode(worker.node), reason)
                await self._send(view, worker.node, change)
            case UndrainWorker():
                view = self._views.opened(controller)
                change = nodes.undrain(view.slurm, [SlurmNode(worker.node)])
                await self._send(view, worker.node, change)
            case _:
                assert_never(action)

    async def _send(self, view: WorkerView, node: str, request: Any) -> None:
        """Send a request; whatever its outcome, the node is unknown until it is read again."""
        is_lost = True
        try:
            await request
            is_lost = False
        except PEER_ERRORS as error:
            is_lost = isinstance(error, LostReply)
            raise
        finally:
            view.wrote(node, is_lost=is_lost)


async def _together(actions: Iterable[Any]) -> list[PeerError]:
    """Run actions concurrently and return the failures of peers; any other failure is raised."""
    results = await asyncio.gather(*actions, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, PeerError):
            raise result
    return [result for result in results if isinstance(result, PeerError)]
