"""Writes the state of its Slurm node to each worker's pod.

The conditions are those of SchedMD's slurm-operator, and the plan says what changes (`node_states`). No decision of ours depends on them. Dashboards and health
checkers read them, so a drain is reported at once. Whether a worker has jobs changes with each short job and is reported at most
every `REPORT_EVERY`, also to autoscalers, by annotations in the same write.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from slurmoperator.nodesets import worker_pods
from slurmoperator.nodesets.plan.look import Outcome, PodFacts
from slurmoperator.nodesets.pod_conditions.node_states import StateChange
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.recent import RecentResults
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.meta import rfc3339
from slurmruntime.values.errors import PEER_ERRORS, PeerError

REPORT_EVERY: Final = timedelta(seconds=10)
_AT_ONCE: Final = 16


class PodConditions:
    """Reports to the pods of workers, during one term of leadership."""

    def __init__(
        self, kube: KubeClient, pods: Cache[WorkerPodObject], monotonic: Callable[[], float]
    ) -> None:
        self._kube = kube
        self._pods = pods
        self._reported = RecentResults[None, bool](monotonic)
        """Whether we have just written to a pod, by its uid."""

    async def report(
        self, changes: Iterable[tuple[PodFacts, StateChange]], now: datetime
    ) -> Outcome:
        """Update pods that do not show the state of their nodes, at once or when it is due."""
        due, late = [], False
        for pod, change in changes:
            if not change.is_urgent and self._reported.of(pod.worker.uid, None):
                late = True
                continue
            meta, status = _meta(pod.version, change.annotations), _status(change, now)
            due.append((pod.version, {"metadata": meta, "status": status}))
        failures: list[PeerError] = []
        for start in range(0, len(due), _AT_ONCE):
            chunk = due[start : start + _AT_ONCE]
            results = await asyncio.gather(*(self._patch(pod, patch) for pod, patch in chunk))
            failures += [result for result in results if result is not None]
            if failures:  # an error common to all is not met a thousand times
                break
        delays = (REPORT_EVERY,) if late else ()
        return Outcome(failures=tuple(failures), delays=delays)

    async def _patch(self, pod: WorkerPodObject, patch: dict[str, Any]) -> PeerError | None:
        try:
            after = await worker_pods.patch_status(self._kube, pod, patch)
        except (errors.NotFound, errors.Conflict):  # it is gone; the watch will show that
            return None
        except PEER_ERRORS as error:
            return error
        self._reported.put(pod.metadata.uid, None, result=True, lasts=REPORT_EVERY)
        self._pods.observe(after, base=pod.metadata.resource_version)
        return None


def _status(change: StateChange, now: datetime) -> dict[str, Any]:
    """Return the patch of a pod's status: others' conditions stay, and ours keep their time."""
    moment = rfc3339(now.replace(microsecond=0))
    conditions: list[dict[str, str]] = []
    for kind, message in change.desired.items():
        if change.shown.get(kind) == message:
            continue
        begins = {} if change.shown.get(kind) is not None else {"lastTransitionTime": moment}
        conditions.append({"type": kind, "status": "True", "message": message, **begins})
    unwanted = [kind for kind in change.shown if kind not in change.desired]
    conditions += [{"type": kind, "$patch": "delete"} for kind in unwanted]
    return {"conditions": conditions}


def _meta(pod: WorkerPodObject, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the patch of a pod's metadata: annotations only in this version, as users write them too."""
    uid = {"uid": pod.metadata.uid}
    if not changes:
        return uid
    return {**uid, "resourceVersion": pod.metadata.resource_version, "annotations": changes}
