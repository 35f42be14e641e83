"""Carries out decisions about workers. Every action is idempotent and may be interrupted anywhere."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, assert_never

import structlog

from bridge.slurm import nodes
from slurmclient.errors import LostReply
from slurmoperator.nodesets import worker_pods
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.planning import Worker
from slurmoperator.nodesets.slurm_view import WorkerView
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.workers.actions import (
    CreateWorker,
    DeleteWorker,
    DrainWorker,
    ProtectWorker,
    ReleaseWorker,
    UndrainWorker,
    WorkerAction,
    WorkerDecision,
)
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.errors import PEER_ERRORS, PeerError
from slurmruntime.values.faults import Refused
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_AT_ONCE: Final = 16
"""How many workers are acted on concurrently."""

PATIENCE_S: Final = 10.0
"""A watch later than this may have lost the event: reconcile again."""

Template = Callable[[WorkerKey], Mapping[str, Any] | Refused]
"""Renders the pod of a worker, or returns why it cannot."""
Decisions = Sequence[tuple[Worker, WorkerDecision]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """The outcome of the actions."""

    failures: tuple[PeerError, ...] = ()
    is_waiting: bool = False
    """The watch has not shown all earlier writes yet."""
    refused: Refused | None = None
    """Why no pod can be made from the NodeSet; None if one can."""


class RecentWrites:
    """The last version of each object that was written to: until the watch shows it, the object is not written again."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._by_name: dict[str, tuple[str, float]] = {}

    def wrote(self, name: str, version: str) -> None:
        """Record a write to this version of an object; "" if it did not exist before."""
        self._by_name[name] = (version, self._monotonic() + PATIENCE_S)

    def is_awaited(self, name: str, version: str) -> bool:
        """Check whether exactly that version was written to and its successor is outstanding."""
        write = self._by_name.get(name)
        if write is None:
            return False
        written_version, until_s = write
        if written_version == version and self._monotonic() < until_s:
            return True
        del self._by_name[name]
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerActuator:
    """Carries out the decisions of one leader."""

    kube: KubeClient
    claims: WorkerClaims
    pods: Cache[WorkerPodObject]
    views: WorkerViews
    recent: RecentWrites

    async def carry_out(
        self, node_set: NodeSetObject, decisions: Decisions, render: Template
    ) -> ActionOutcome:
        """Carry out the actions of all workers; a failure affects only its own worker."""
        failures: list[PeerError] = []
        existing = [(worker, decision) for worker, decision in decisions if worker.pod is not None]
        view = self.views.of(node_set.controller)
        for chunk in _chunks(existing, _AT_ONCE):
            failures += await _together(
                self._act_on(worker, decision, view=view) for worker, decision in chunk
            )
        missing = [worker for worker, decision in decisions if CreateWorker() in decision.actions]
        bodies: list[tuple[WorkerKey, str, Mapping[str, Any]]] = []
        for worker in missing:
            body = render(worker.key)
            if isinstance(body, Refused):
                return ActionOutcome(failures=tuple(failures), refused=body)
            name = f"{node_set.metadata.namespace}/{body['metadata']['name']}"
            bodies.append((worker.key, name, body))
        new = [
            (key, name, body) for key, name, body in bodies if not self.recent.is_awaited(name, "")
        ]
        failures += await self._create(node_set, new)
        return ActionOutcome(failures=tuple(failures), is_waiting=len(new) < len(bodies))

    async def _create(
        self, node_set: NodeSetObject, bodies: list[tuple[WorkerKey, str, Mapping[str, Any]]]
    ) -> list[PeerError]:
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
        await self.claims.create(node_set, key)
        namespace = node_set.metadata.namespace
        await worker_pods.create(self.kube, namespace, body, owner_uid=node_set.metadata.uid)
        self.recent.wrote(name, "")
        _log.info("worker.created", pod=name)

    async def _act_on(
        self, worker: Worker, decision: WorkerDecision, *, view: WorkerView | None
    ) -> None:
        """Carry out one worker's actions in order, stopping at the first that fails."""
        pod = worker.pod
        if pod is None or self._is_awaited(pod):
            return
        for action in decision.actions:
            await self._act(worker, pod, action, view)
            _log.info(
                "worker.acted",
                action=type(action).__name__,
                pod=pod.metadata.full_name,
                reason=decision.reason,
            )

    async def _act(
        self, worker: Worker, pod: WorkerPodObject, action: WorkerAction, view: WorkerView | None
    ) -> None:
        match action:
            case CreateWorker():
                pass  # `_create` does this for all missing workers
            case ProtectWorker():
                after = await worker_pods.protect(self.kube, pod)
                self.pods.observe(after, base=pod.metadata.resource_version)
            case ReleaseWorker(uid=uid, resource_version=version):
                after = await worker_pods.release(self.kube, pod, uid=uid, version=version)
                self.pods.observe(after, base=pod.metadata.resource_version)
            case DeleteWorker(uid=uid, resource_version=version):
                await worker_pods.delete(self.kube, pod, uid=uid, version=version)
                self.recent.wrote(pod.metadata.full_name, version)
            case DrainWorker(reason=reason):
                if view is not None:
                    change = nodes.drain(view.slurm, SlurmNode(worker.node), reason)
                    await self._send(view, worker.node, change)
            case UndrainWorker():
                if view is not None:
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
        except LostReply:
            raise
        except PEER_ERRORS:
            is_lost = False
            raise
        finally:
            view.wrote(node, is_lost=is_lost)

    def _is_awaited(self, pod: WorkerPodObject) -> bool:
        return self.recent.is_awaited(pod.metadata.full_name, pod.metadata.resource_version)


async def _together(actions: Iterable[Any]) -> list[PeerError]:
    """Run actions concurrently and return their failures.

    Raises:
        Exception: one failed with something other than a peer's error.
    """
    results = await asyncio.gather(*actions, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, PeerError):
            raise result
    return [result for result in results if isinstance(result, PeerError)]


def _chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
