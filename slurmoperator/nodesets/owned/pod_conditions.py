"""Writes the state of its Slurm node to each worker's pod.

The conditions are those of SchedMD's slurm-operator (`node_states`). No decision of ours depends on them. Dashboards and health
checkers read them, so a drain is reported at once. Whether a worker has jobs changes with each short job and is reported at most
every `REPORT_EVERY_S`, also to autoscalers, by annotations in the same write.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from slurmoperator.nodesets import worker_pods
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.workers import node_states
from slurmoperator.workers.node_states import STATE_PREFIX
from slurmoperator.workers.situation import PodStage
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.meta import rfc3339
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.errors import PEER_ERRORS, PeerError

REPORT_EVERY_S: Final = 10.0
_AT_ONCE: Final = 16
_URGENT: Final = frozenset(
    f"{STATE_PREFIX}{state}" for state in ("Drain", "Undrain", "Down", "Fail")
)
"""Conditions that others act on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    """The outcome of a report."""

    failures: tuple[PeerError, ...] = ()
    requeue_after: timedelta | None = None
    """When the rest is due; None if everything is reported."""


class PodConditions:
    """Reports to the pods of workers, during one term of leadership."""

    def __init__(
        self, kube: KubeClient, pods: Cache[WorkerPodObject], monotonic: Callable[[], float]
    ) -> None:
        self._kube = kube
        self._pods = pods
        self._monotonic = monotonic
        self._reported_s: dict[str, float] = {}
        """When we last wrote to a pod, by its uid."""

    async def report(
        self,
        pods: Iterable[WorkerPodObject],
        listed: Callable[[str], SlurmNodeFacts | None],
        now: datetime,
        *,
        is_guarded: bool,
    ) -> ReportResult:
        """Update the pods whose conditions or annotations differ from what Slurm lists.

        Args:
            listed: returns a node as in the last reading of Slurm; None if Slurm has no such node.
            is_guarded: autoscalers should spare workers with jobs.
        """
        at_s = self._monotonic()
        self._reported_s = {
            uid: s for uid, s in self._reported_s.items() if s > at_s - REPORT_EVERY_S
        }
        due, late = [], False
        for pod in pods:
            node = listed(pod.slurm_node)
            desired = node_states.desired_conditions(node.states, node.reason) if node else {}
            current = node_states.current_conditions(pod.status.conditions or ())
            # Until a pod is first ready, the node in Slurm is that of its predecessor.
            is_known = bool(current) or pod.facts.stage is PodStage.READY
            changes = node_states.annotation_changes(
                pod.metadata.annotations, has_jobs=_has_jobs(node, is_guarded=is_guarded)
            )
            is_current = desired == current and not changes
            if is_current or not is_known or pod.facts.stage is PodStage.OVER:
                continue
            kinds = {*desired, *current}
            differing = {kind for kind in kinds if desired.get(kind) != current.get(kind)}
            if pod.metadata.uid in self._reported_s and not differing & _URGENT:
                late = True
                continue
            patch = {"metadata": _meta(pod, changes), "status": _status(desired, current, now)}
            due.append((pod, patch))
        failures: list[PeerError] = []
        for start in range(0, len(due), _AT_ONCE):
            chunk = due[start : start + _AT_ONCE]
            results = await asyncio.gather(*(self._patch(pod, patch) for pod, patch in chunk))
            failures += [result for result in results if result is not None]
            if failures:  # an error common to all is not met a thousand times
                break
        requeue_after = timedelta(seconds=REPORT_EVERY_S) if late else None
        return ReportResult(failures=tuple(failures), requeue_after=requeue_after)

    async def _patch(self, pod: WorkerPodObject, patch: dict[str, Any]) -> PeerError | None:
        try:
            after = await worker_pods.patch_status(self._kube, pod, patch)
        except (errors.NotFound, errors.Conflict):  # it is gone; the watch will show that
            return None
        except PEER_ERRORS as error:
            return error
        self._reported_s[pod.metadata.uid] = self._monotonic()
        self._pods.observe(after, base=pod.metadata.resource_version)
        return None


def _status(
    desired: dict[str, str], current: dict[str, str | None], now: datetime
) -> dict[str, Any]:
    """Return the patch of a pod's status: others' conditions stay, and ours keep their time."""
    moment = rfc3339(now.replace(microsecond=0))
    conditions: list[dict[str, str]] = []
    for kind, message in desired.items():
        if current.get(kind) == message:
            continue
        begins = {} if current.get(kind) is not None else {"lastTransitionTime": moment}
        conditions.append({"type": kind, "status": "True", "message": message, **begins})
    conditions += [{"type": kind, "$patch": "delete"} for kind in current if kind not in desired]
    return {"conditions": conditions}


def _meta(pod: WorkerPodObject, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the patch of a pod's metadata: annotations only in this version, as users write them too."""
    uid = {"uid": pod.metadata.uid}
    if not changes:
        return uid
    return {**uid, "resourceVersion": pod.metadata.resource_version, "annotations": changes}


def _has_jobs(node: SlurmNodeFacts | None, *, is_guarded: bool) -> bool | None:
    """Check whether autoscalers should spare a worker for its jobs; None if Slurm does not have it."""
    if not is_guarded:
        return False
    return None if node is None else node.is_busy
