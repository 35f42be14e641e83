"""What daemons make of a new configuration: read from the containers that try it, and told in words.

They have no rights in Kubernetes and no port. What tries slurm.conf beside a slurmctld says it in its log; what tries slurmdbd.conf
before slurmdbd starts says it in its last words.
"""

import asyncio
import enum
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from cluster.configuration.rendering import ConfigurationSet
from cluster.configuration.slurm_conf import node_line
from cluster.nodesets.owned.tried import TriedConf, TriedConfs
from cluster.objects.accounting import AccountingObject
from cluster.objects.controller import ControllerObject
from cluster.objects.labels import selecting
from cluster.objects.nodeset import NodeSetObject
from cluster.objects.pod_status import ContainerStatus, PodStatus
from cluster.rendering import accounting, trying
from cluster.rendering.body import CONFIGURATION_ANNOTATION
from cluster.rendering.controller import RECONFIGURE

_MOST_PODS: Final = 5
_MOST_LINES: Final = 3 * trying.MOST_UNFIT
_NO_POD: Final = "there is no pod of slurmctld yet"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeVerdicts:
    """What became of the nodes that workers are to register."""

    refused: Mapping[str, str] | None = None
    """By the digest of a node's line: slurmctld's words; None if that is not known."""
    words: str = ""
    """Why it is not known."""
    is_coming: bool = False
    """Whether it is about to be known."""

    def of(self, node_set: NodeSetObject) -> TriedConf:
        """Return what is known of one."""
        words = self.words
        if self.refused is not None:
            words = self.refused.get(node_digest(node_set), "")
        is_known = self.refused is not None
        return TriedConf(extra_conf=node_set.spec.extra_conf, is_known=is_known, words=words)


class _Pod(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: PodStatus = PodStatus()


class _Pods(ObjectStruct, frozen=True):
    items: tuple[_Pod, ...] = ()


_pods = msgspec.json.Decoder(_Pods)
_LINE: Final = re.compile(
    rf"{trying.TELLS} (taken|refused|unfit|judged) ([0-9a-f]{{64}} \S*) ?(.*)"
)


def verdict(log: str, tag: str) -> TrialVerdict:
    """Return what was said last, if it is of this write of this set."""
    said = (each for each in _lines(log) if each[1] in ("taken", "refused"))
    found = next(said, None)
    if found is None or found[2] != tag:
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, is_coming=True)
    return TrialVerdict(outcome=TrialOutcome(found[1]), words=found[3])


def unfit(log: str, tag: str) -> Mapping[str, str] | None:
    """Return which nodes of workers slurmctld would refuse: its words, by the digest of a node's line; None if this write's were not judged."""
    said = [each for each in _lines(log) if each[1] in ("unfit", "judged")]
    if not said or (said[0][1], said[0][2]) != ("judged", tag):
        return None
    refused = itertools.takewhile(lambda each: each[1] == "unfit", said[1:])
    return {each[2].split()[0]: each[3] for each in refused}


def without_write(data: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files of a ConfigMap without the one that names its write."""
    return {name: content for name, content in data.items() if name != trying.WRITTEN}


def as_written(
    wanted: ConfigurationSet, data: Mapping[str, str], now: datetime
) -> ConfigurationSet:
    """Return files with their write: the last one if it was of the same files, else a new one.

    Args:
        wanted: the files.
        data: what the ConfigMap has; nothing if there is none.
        now: what a new write is called: no two have the same time.
    """
    before = without_write(data)
    last = ConfigurationSet(files=before, made=frozenset(before))
    is_same = trying.WRITTEN in data and last.digest == wanted.digest
    return replace(wanted, written=data[trying.WRITTEN] if is_same else now.isoformat())


def _is_asked(node_set: NodeSetObject) -> bool:
    """Check whether there is something to try."""
    asked = node_set.spec.extra_conf
    return bool(asked.strip()) and asked != node_set.status.accepted_conf


def node_digest(node_set: NodeSetObject) -> str:
    """Return by what a node of its workers is told apart."""
    return hashlib.sha256(node_line(node_set).encode()).hexdigest()


def _lines(log: str) -> Iterator[re.Match[str]]:
    """Yield what a side-car said, the last first."""
    return filter(None, map(_LINE.fullmatch, reversed(log.splitlines())))


def of_all(found: Sequence[TrialVerdict], daemon: str) -> TrialVerdict:
    """Return what holds for all pods together: one that refuses, then one that has not said, counts more than those that take it."""
    for outcome in (TrialOutcome.REFUSED, TrialOutcome.NOT_TRIED, TrialOutcome.TAKEN):
        for each in found:
            if each.outcome is outcome:
                return each
    return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, words=f"there is no pod of {daemon} yet")


def _tries(pod: _Pod) -> bool:
    return any(each.name == RECONFIGURE and each.runs for each in pod.status.containers)


def at_start(status: PodStatus, name: str, tag: str) -> TrialVerdict:
    """Return what a slurmdbd makes of a file: it has taken one only when it serves with it."""
    tries, daemon = (
        next((each for each in status.containers if each.name == wanted), ContainerStatus())
        for wanted in (accounting.CONFIGURATION, accounting.SLURMDBD)
    )
    found = verdict(tries.last_words, tag)
    if found.outcome is TrialOutcome.NOT_TRIED:
        return replace(found, words=f"pod {name} is about to try it")
    if found.outcome is TrialOutcome.TAKEN and not daemon.ready:
        words = f"slurmdbd of pod {name} can read it, and does not serve yet"
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, words=words, is_coming=True)
    return found


@dataclass(slots=True)
class _Awaited:
    """A set that its daemon has not judged."""

    tag: str
    since: datetime
    nudges: int = 0


class Trials:
    """Asks the pods of Controllers and Accountings."""

    def __init__(self, kube: KubeClient, clock: Clock, tried: TriedConfs) -> None:
        self._kube = kube
        self._clock = clock
        self._tried = tried
        self._awaited: dict[str, _Awaited] = {}

    async def of(self, part: ControllerObject, tag: str) -> TrialVerdict:
        """Return what became of this write of a set.

        Raises:
            KubeError: its pods were not listed: look again.
        """
        pods = await self._pods(part.metadata, "slurmctld")
        asked = [await self._asked(each, tag) for each in pods]
        return self._awaiting(part.metadata.uid, tag, of_all(asked, "slurmctld"))

    async def at_start(self, part: AccountingObject, tag: str) -> TrialVerdict:
        """Return what became of a slurmdbd.conf.

        Raises:
            KubeError: its pods were not listed: look again.
        """
        pods = await self._pods(part.metadata, accounting.SLURMDBD)
        asked = [at_start(each.status, each.metadata.name, tag) for each in pods]
        return self._awaiting(part.metadata.uid, tag, of_all(asked, accounting.SLURMDBD))

    def _awaiting(self, uid: str, tag: str, found: TrialVerdict) -> TrialVerdict:
        """Remember since when a verdict is waited for: what takes very long is not looked for every second."""
        if found.outcome is not TrialOutcome.NOT_TRIED:
            self._awaited.pop(uid, None)
        elif not self._is_new(uid, tag):
            return replace(found, is_coming=False)
        return found

    async def try_nodes(
        self, part: ControllerObject, files: ConfigurationSet, node_sets: Iterable[NodeSetObject]
    ) -> bool:
        """Tell what slurmctld makes of the nodes that workers are to register; return whether more is about to be known.

        Raises:
            KubeError: its pods were not listed: look again.
        """
        asked = [each for each in node_sets if _is_asked(each)]
        if not asked:
            return False
        found = _NodeVerdicts(refused={})
        lines = frozenset(files.files["slurm.conf"].split("\n"))
        if not part.spec.external:
            found = await self._nodes(part, files.tag)
        for each in asked:
            known = found.of(each)
            if not part.spec.external and f"#{node_line(each)}" not in lines:
                words = f"Controller {part.metadata.name} does not take it in: see its conditions"
                known = replace(known, is_known=False, words=words)
            self._tried.put(each.metadata.uid, known)
        return found.is_coming

    async def _nodes(self, part: ControllerObject, tag: str) -> _NodeVerdicts:
        refused: dict[str, str] = {}
        pods = await self._pods(part.metadata, "slurmctld")
        words = "" if pods else _NO_POD
        for pod in pods:
            log = await self._log(pod)
            found = unfit(log, tag) if isinstance(log, str) else None
            if isinstance(log, TrialVerdict):
                words = log.words
            elif found is None:
                words = f"pod {pod.metadata.name} is about to try it"
            refused |= found or {}
        key = f"{part.metadata.uid} nodes"
        if words:
            return _NodeVerdicts(words=words, is_coming=self._is_new(key, tag))
        self._awaited.pop(key, None)
        return _NodeVerdicts(refused=refused)

    def _is_new(self, key: str, tag: str) -> bool:
        """Check whether it has just been asked of a write of a set what slurmctld makes of it."""
        awaited = self._awaited.get(key)
        if awaited is None or awaited.tag != tag:
            self._awaited[key] = _Awaited(tag, self._clock.now())
            return True
        return self._clock.now() <= awaited.since + _SOON

    async def hurry(self, controller: ObjectMetadata, tag: str) -> PeerError | None:
        """Change the pods, so that their kubelets bring new files at once and not within two minutes; return what failed."""
        awaited = self._awaited.get(controller.uid)
        if awaited is None or awaited.tag != tag or awaited.nudges >= len(_NUDGES):
            return None
        if self._clock.now() < awaited.since + _NUDGES[awaited.nudges]:
            return None
        annotations = {CONFIGURATION_ANNOTATION: f"{tag} {awaited.nudges + 1}"}
        try:
            pods = [each for each in await self._pods(controller, "slurmctld") if _tries(each)]
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

    async def _pods(self, owner: ObjectMetadata, app: str) -> tuple[_Pod, ...]:
        labels = selecting(app, owner.name).items()
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels))
        where = paths.collection("v1", "pods", owner.namespace)
        params = {"labelSelector": selector, "limit": str(_MOST_PODS)}
        found = decode.decoded(_pods, "pods", await self._kube.request("GET", where, params=params))
        return tuple(each for each in found.items if each.metadata.deletion_timestamp is None)

    async def _asked(self, pod: _Pod, tag: str) -> TrialVerdict:
        log = await self._log(pod)
        if isinstance(log, TrialVerdict):
            return log
        found = verdict(log, tag)
        if found.outcome is TrialOutcome.NOT_TRIED:
            words = f"pod {pod.metadata.name} is about to try it"
            return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, words=words, is_coming=True)
        return found

    async def _log(self, pod: _Pod) -> str | TrialVerdict:
        """Return what a side-car has said, or why that is not known."""
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
        return log.decode(errors="replace")
