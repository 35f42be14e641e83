"""What slurmctld makes of a new configuration: read from the logs of the side-cars that try it, and told in words.

They have no rights in Kubernetes and no port; whoever may read a pod's log can ask them.
"""

import asyncio
import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.domain.errors import PeerError
from bridge.kube import decode, paths
from bridge.kube.client import MERGE_PATCH, KubeClient
from bridge.kube.errors import NotFound
from bridge.process.clock import Clock
from cluster.objects.controller import ControllerObject
from cluster.objects.labels import selecting
from cluster.objects.pod_status import PodStatus
from cluster.rendering import trying
from cluster.rendering.body import CONFIGURATION_ANNOTATION
from cluster.rendering.controller import RECONFIGURE

_MOST_PODS: Final = 5
_MOST_LINES: Final = 20
_MOST_BYTES: Final = 64 * 1024
_LONGEST: Final = timedelta(seconds=5)
"""For one log: a kubelet that does not answer must not hold up others."""
_NUDGES: Final = (timedelta(0), timedelta(seconds=5), timedelta(seconds=15))
"""When a pod is changed after its files, so that its kubelet looks at it: it may not have heard of them at the first time."""
_SOON: Final = timedelta(minutes=3)
"""After that nobody hurries any more."""
LOOKS: Final = timedelta(seconds=1)
"""How often it is asked what has become of files."""


class TrialOutcome(enum.Enum):
    """What is known of a set."""

    TAKEN = "taken"
    REFUSED = "refused"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialVerdict:
    """What became of a set, in words."""

    outcome: TrialOutcome
    words: str = ""
    is_coming: bool = False
    """Whether it is about to be known."""


class _Pod(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: PodStatus = PodStatus()


class _Pods(ObjectStruct, frozen=True):
    items: tuple[_Pod, ...] = ()


_pods = msgspec.json.Decoder(_Pods)
_LINE: Final = re.compile(rf"{trying.TELLS} (taken|refused) ([0-9a-f]{{64}}) ?(.*)")


def verdict(log: str, digest: str) -> TrialVerdict:
    """Return what a side-car said last, if it is of this set."""
    found = next(filter(None, map(_LINE.fullmatch, reversed(log.splitlines()))), None)
    if found is None or found[2] != digest:
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, is_coming=True)
    return TrialVerdict(outcome=TrialOutcome(found[1]), words=found[3])


def of_all(found: Sequence[TrialVerdict]) -> TrialVerdict:
    """Return what holds for all pods together: one that refuses, then one that has not said, counts more than those that take it."""
    for outcome in (TrialOutcome.REFUSED, TrialOutcome.NOT_TRIED, TrialOutcome.TAKEN):
        for each in found:
            if each.outcome is outcome:
                return each
    return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, words="there is no pod of slurmctld yet")


def _tries(pod: _Pod) -> bool:
    return any(each.name == RECONFIGURE and each.runs for each in pod.status.containers)


@dataclass(slots=True)
class _Awaited:
    """A set that slurmctld has not judged."""

    digest: str
    since: datetime
    nudges: int = 0


class Trials:
    """Asks the pods of Controllers."""

    def __init__(self, kube: KubeClient, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._awaited: dict[str, _Awaited] = {}

    async def of(self, part: ControllerObject, digest: str) -> TrialVerdict:
        """Return what became of a set.

        Raises:
            KubeError: its pods were not listed: look again.
        """
        pods = await self._pods(part.metadata)
        found = of_all([await self._asked(each, digest) for each in pods])
        awaited = self._awaited.get(part.metadata.uid)
        if found.outcome is not TrialOutcome.NOT_TRIED:
            self._awaited.pop(part.metadata.uid, None)
        elif awaited is None or awaited.digest != digest:
            self._awaited[part.metadata.uid] = _Awaited(digest, self._clock.now())
        elif self._clock.now() > awaited.since + _SOON:
            return replace(found, is_coming=False)
        return found

    async def hurry(self, controller: ObjectMetadata, digest: str) -> PeerError | None:
        """Change the pods, so that their kubelets bring new files at once and not within two minutes; return what failed."""
        awaited = self._awaited.get(controller.uid)
        if awaited is None or awaited.digest != digest or awaited.nudges >= len(_NUDGES):
            return None
        if self._clock.now() < awaited.since + _NUDGES[awaited.nudges]:
            return None
        annotations = {CONFIGURATION_ANNOTATION: f"{digest} {awaited.nudges + 1}"}
        try:
            pods = [each for each in await self._pods(controller) if _tries(each)]
            awaited.nudges += bool(pods)
            for pod in pods:
                await self._kube.request(
                    "PATCH",
                    paths.pod(pod.metadata.namespace, pod.metadata.name),
                    body={"metadata": {"annotations": annotations}},
                    content_type=MERGE_PATCH,
                )
        except NotFound:
            return None  # it has just gone
        except PeerError as error:
            return error
        return None

    async def _pods(self, controller: ObjectMetadata) -> tuple[_Pod, ...]:
        labels = selecting("slurmctld", controller.name).items()
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels))
        where = paths.collection("v1", "pods", controller.namespace)
        params = {"labelSelector": selector, "limit": str(_MOST_PODS)}
        found = decode.decoded(_pods, "pods", await self._kube.request("GET", where, params=params))
        return tuple(each for each in found.items if each.metadata.deletion_timestamp is None)

    async def _asked(self, pod: _Pod, digest: str) -> TrialVerdict:
        name = pod.metadata.name
        if not _tries(pod):
            words = f"container {RECONFIGURE} of pod {name} does not run yet"
            return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, words=words, is_coming=True)
        where = paths.pod(pod.metadata.namespace, name) + "/log"
        params = {
            "container": RECONFIGURE,
            "tailLines": str(_MOST_LINES),
            "limitBytes": str(_MOST_BYTES),
        }
        try:
            async with asyncio.timeout(_LONGEST.total_seconds()):
                log = await self._kube.request("GET", where, params=params, accept="*/*")
        except (PeerError, TimeoutError) as error:
            words = f"the log of container {RECONFIGURE} of pod {name} was not read: {error}"
            return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, words=words)
        found = verdict(log.decode(errors="replace"), digest)
        if found.outcome is TrialOutcome.NOT_TRIED:
            return TrialVerdict(
                outcome=TrialOutcome.NOT_TRIED,
                words=f"pod {name} is about to try it",
                is_coming=True,
            )
        return found
