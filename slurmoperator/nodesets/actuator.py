"""Carry out what was decided for a NodeSet's workers. Every action is idempotent and may be cut off anywhere."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, assert_never

import structlog

from bridge.slurm import nodes
from slurmoperator.nodesets import worker_pods
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.planning import PlannedWorker
from slurmoperator.nodesets.recent_writes import RecentWrites
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
from slurmruntime.slurm.errors import LostReply
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Refused
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_AT_ONCE: Final = 16
"""Workers that are acted on at the same time."""

Template = Callable[[WorkerKey], Mapping[str, Any] | Refused]
"""Makes the pod of this worker, or says why there is none."""
Decided = Sequence[tuple[PlannedWorker, WorkerDecision]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What became of the actions."""

    failures: tuple[PeerError, ...] = ()
    is_waiting: bool = False
    """The watch has not shown all of what was written before."""
    refused: Refused | None = None
    """Why no pod can be made of the NodeSet as it is."""


class WorkerActuator:
    """Carries out the decisions of one leader."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        claims: WorkerClaims,
        pods: Cache[WorkerPodObject],
        views: WorkerViews,
        recent: RecentWrites,
    ) -> None:
        self._kube = kube
        self._claims = claims
        self._pods = pods
        self._views = views
        self._recent = recent

    async def carry_out(self, node_set: NodeSetObject, decided: Decided, make: Template) -> Acted:
        """Carry out the actions of all workers; one that fails costs only itself."""
        failures: list[PeerError] = []
        there = [each for each in decided if each[0].pod is not None]
        view = self._views.of(node_set.controller)
        for some in _chunks(there, _AT_ONCE):
            failures += await _together(self._one(*each, view=view) for each in some)
        missing = [each for each, decision in decided if CreateWorker() in decision.actions]
        bodies: list[tuple[WorkerKey, str, Mapping[str, Any]]] = []
        for each in missing:
            made = make(each.key)
            if isinstance(made, Refused):
                return Acted(failures=tuple(failures), refused=made)
            name = f"{node_set.metadata.namespace}/{made['metadata']['name']}"
            bodies.append((each.key, name, made))
        new = [body for body in bodies if not self._recent.is_awaited(body[1], "")]
        failures += await self._create(node_set, new)
        return Acted(failures=tuple(failures), is_waiting=len(new) < len(bodies))

    async def _create(
        self, node_set: NodeSetObject, bodies: list[tuple[WorkerKey, str, Mapping[str, Any]]]
    ) -> list[PeerError]:
        """Create pods, ever more at a time: what fails for all of them is tried once, not a thousand times."""
        at_once = 1
        while bodies:
            some, bodies = bodies[:at_once], bodies[at_once:]
            failures = await _together(self._create_one(node_set, *each) for each in some)
            if failures:
                return failures
            at_once = min(at_once * 2, _AT_ONCE)
        return []

    async def _create_one(
        self, node_set: NodeSetObject, key: WorkerKey, name: str, body: Mapping[str, Any]
    ) -> None:
        await self._claims.make(node_set, key)
        namespace = node_set.metadata.namespace
        await worker_pods.create(self._kube, namespace, body, owner_uid=node_set.metadata.uid)
        self._recent.wrote(name, "")
        _log.info("worker.created", pod=name)

    async def _one(
        self, worker: PlannedWorker, decision: WorkerDecision, *, view: WorkerView | None
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
        self,
        worker: PlannedWorker,
        pod: WorkerPodObject,
        action: WorkerAction,
        view: WorkerView | None,
    ) -> None:
        match action:
            case CreateWorker():
                pass  # `_create` does, for all that are missing
            case ProtectWorker():
                after = await worker_pods.protect(self._kube, pod)
                self._pods.observe(after, base=pod.metadata.resource_version)
            case ReleaseWorker(uid=uid, resource_version=version):
                after = await worker_pods.release(self._kube, pod, uid=uid, version=version)
                self._pods.observe(after, base=pod.metadata.resource_version)
            case DeleteWorker(uid=uid, resource_version=version):
                await worker_pods.delete(self._kube, pod, uid=uid, version=version)
                self._recent.wrote(pod.metadata.full_name, version)
            case DrainWorker(reason=reason):
                if view is not None:
                    change = nodes.drain(view.slurm, SlurmNode(worker.node), reason)
                    await self._tell_slurm(view, worker.node, change)
            case UndrainWorker():
                if view is not None:
                    change = nodes.undrain(view.slurm, [SlurmNode(worker.node)])
                    await self._tell_slurm(view, worker.node, change)
            case _:
                assert_never(action)

    async def _tell_slurm(self, view: WorkerView, node: str, request: Any) -> None:
        """Send a request; whatever becomes of it, nothing is known of the node until it is read again."""
        is_lost = True
        try:
            await request
            is_lost = False
        except LostReply:
            raise
        except PeerError:
            is_lost = False
            raise
        finally:
            view.wrote(node, is_lost=is_lost)

    def _is_awaited(self, pod: WorkerPodObject) -> bool:
        return self._recent.is_awaited(pod.metadata.full_name, pod.metadata.resource_version)


async def _together(actions: Iterable[Any]) -> list[PeerError]:
    """Run some actions at the same time and return what failed of them.

    Raises:
        Exception: one failed in a way that no peer's error explains.
    """
    found = await asyncio.gather(*actions, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, PeerError):
            raise each
    return [each for each in found if isinstance(each, PeerError)]


def _chunks(some: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    rest = iter(some)
    while chunk := list(islice(rest, size)):
        yield chunk
