"""Tell each worker's pod how its Slurm node stands, by the conditions that SchedMD's slurm-operator writes (`node_states`).

No decision of ours depends on them. Dashboards and health checkers read them, so a drain is told at once; whether a worker has
jobs changes with each short job, and is told no more often than `TELL_EVERY_S`: to autoscalers as well, by annotations in the
same write.
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
from slurmruntime.values.errors import PeerError

TELL_EVERY_S: Final = 10.0
_AT_ONCE: Final = 16
_URGENT: Final = frozenset(f"{STATE_PREFIX}{each}" for each in ("Drain", "Undrain", "Down", "Fail"))
"""What others act on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What became of it."""

    failures: tuple[PeerError, ...] = ()
    look_again: timedelta | None = None
    """When the rest is due; None if there is none."""


class ToldStates:
    """Tells the pods of workers, during one term of leadership."""

    def __init__(
        self, kube: KubeClient, pods: Cache[WorkerPodObject], monotonic: Callable[[], float]
    ) -> None:
        self._kube = kube
        self._pods = pods
        self._monotonic = monotonic
        self._told_s: dict[str, float] = {}
        """When a pod was told last, by its uid."""

    async def tell(
        self,
        pods: Iterable[WorkerPodObject],
        listed: Callable[[str], SlurmNodeFacts | None],
        now: datetime,
        *,
        is_guarded: bool,
    ) -> Telling:
        """Tell those whose conditions or annotations are not what Slurm lists.

        Args:
            pods: of one NodeSet.
            listed: a node by the last reading of Slurm; None if Slurm has no such node.
            now: for the conditions.
            is_guarded: whoever has jobs is to be spared.
        """
        at_s = self._monotonic()
        self._told_s = {uid: s for uid, s in self._told_s.items() if s > at_s - TELL_EVERY_S}
        due, late = [], False
        for pod in pods:
            node = listed(pod.slurm_node)
            wanted = node_states.wanted(node.states, node.reason) if node else {}
            told = node_states.told(pod.status.conditions or ())
            # Until a pod is ready for the first time, Slurm's node is that of its predecessor.
            is_known = bool(told) or pod.facts.stage is PodStage.READY
            spared = node_states.annotated(
                pod.metadata.annotations, has_jobs=_has_jobs(node, is_guarded=is_guarded)
            )
            is_right = wanted == told and not spared
            if is_right or not is_known or pod.facts.stage is PodStage.OVER:
                continue
            differ = {kind for kind in {*wanted, *told} if wanted.get(kind) != told.get(kind)}
            if pod.metadata.uid in self._told_s and not differ & _URGENT:
                late = True
                continue
            patch = {"metadata": _meta(pod, spared), "status": _status(wanted, told, now)}
            due.append((pod, patch))
        failures: list[PeerError] = []
        for start in range(0, len(due), _AT_ONCE):
            some = due[start : start + _AT_ONCE]
            found = await asyncio.gather(*(self._tell_one(*each) for each in some))
            failures += [each for each in found if each is not None]
            if failures:  # what fails for all of them is not tried a thousand times
                break
        again = timedelta(seconds=TELL_EVERY_S) if late else None
        return Telling(failures=tuple(failures), look_again=again)

    async def _tell_one(self, pod: WorkerPodObject, patch: dict[str, Any]) -> PeerError | None:
        try:
            after = await worker_pods.tell(self._kube, pod, patch)
        except (errors.NotFound, errors.Conflict):  # it is gone; the watch says so
            return None
        except PeerError as error:
            return error
        self._told_s[pod.metadata.uid] = self._monotonic()
        self._pods.observe(after, base=pod.metadata.resource_version)
        return None


def _status(wanted: dict[str, str], told: dict[str, str | None], now: datetime) -> dict[str, Any]:
    """Return the patch of a pod's status: conditions of others stay, and those that hold on keep their time."""
    moment = rfc3339(now.replace(microsecond=0))
    conditions: list[dict[str, str]] = []
    for kind, message in wanted.items():
        if told.get(kind) == message:
            continue
        begins = {} if told.get(kind) is not None else {"lastTransitionTime": moment}
        conditions.append({"type": kind, "status": "True", "message": message, **begins})
    conditions += [{"type": kind, "$patch": "delete"} for kind in told if kind not in wanted]
    return {"conditions": conditions}


def _meta(pod: WorkerPodObject, spared: Mapping[str, str | None]) -> dict[str, Any]:
    """Return which pod it is, and how its annotations change: in this very version, as a user may write there as well."""
    uid = {"uid": pod.metadata.uid}
    if not spared:
        return uid
    return {**uid, "resourceVersion": pod.metadata.resource_version, "annotations": spared}


def _has_jobs(node: SlurmNodeFacts | None, *, is_guarded: bool) -> bool | None:
    """Return whether a worker has jobs for which it is to be spared; None if nobody knows, as Slurm does not have it."""
    if not is_guarded:
        return False
    return None if node is None else node.is_busy
