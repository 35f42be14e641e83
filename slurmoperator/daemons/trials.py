"""Reads what daemons make of a new configuration from the containers that try it.

Those have no rights in Kubernetes and no port. The side-car that tries slurm.conf beside slurmctld writes the verdict to its log; the
container that tries slurmdbd.conf before slurmdbd starts writes it to its termination message.
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

from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.configuration.slurm_conf import node_line
from slurmoperator.daemons import workload
from slurmoperator.daemons.workload import DaemonPod
from slurmoperator.nodesets.owned.conf_trials import ConfTrial, ConfTrials
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import selecting
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.pod_status import ContainerStatus, PodStatus
from slurmoperator.rendering import accounting, trying
from slurmoperator.rendering.body import CONFIGURATION_ANNOTATION
from slurmoperator.rendering.controller import RECONFIGURE
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import paths
from slurmruntime.kube.client import MERGE_PATCH, KubeClient
from slurmruntime.kube.errors import NotFound
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PEER_ERRORS, PeerError

_MOST_PODS: Final = 5
_MOST_LINES: Final = 3 * trying.MOST_UNFIT
_NO_POD: Final = "there is no pod of slurmctld yet"
_MOST_BYTES: Final = 64 * 1024
_LONGEST: Final = timedelta(seconds=5)
"""For one log: a kubelet that does not answer must not delay others."""
_NUDGES: Final = (timedelta(0), timedelta(seconds=5), timedelta(seconds=15))
"""When a pod is touched after its files have changed, so that its kubelet syncs them. It may not know of them yet the first time."""
_PENDING_FOR: Final = timedelta(minutes=3)
"""How long a verdict is polled for at the short interval."""
POLL_INTERVAL: Final = timedelta(seconds=1)
"""How often the containers are asked for a pending verdict."""


class TrialOutcome(enum.Enum):
    """What a daemon makes of a set of files."""

    TAKEN = "taken"
    REFUSED = "refused"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialVerdict:
    """A daemon's verdict on a set of files."""

    outcome: TrialOutcome
    message: str = ""
    is_pending: bool = False
    """Whether the outcome is expected soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeVerdicts:
    """slurmctld's verdicts on the nodes that workers will register."""

    refused: Mapping[str, str] | None = None
    """slurmctld's messages by the digest of the node's line; None if they are unknown."""
    message: str = ""
    """Why the verdicts are unknown."""
    is_pending: bool = False
    """Whether the verdicts are expected soon."""

    def of(self, node_set: NodeSetObject) -> ConfTrial:
        """Return the verdict on one NodeSet's nodes."""
        message = self.message
        if self.refused is not None:
            message = self.refused.get(node_digest(node_set), "")
        is_known = self.refused is not None
        return ConfTrial(extra_conf=node_set.spec.extra_conf, is_known=is_known, words=message)


_LINE: Final = re.compile(
    rf"{trying.LOG_PREFIX} (taken|refused|unfit|judged) ([0-9a-f]{{64}} \S*) ?(.*)"
)


def verdict(log: str, tag: str) -> TrialVerdict:
    """Return the last verdict in a log, if it is on this write of the files."""
    verdicts = (line for line in _lines(log) if line[1] in ("taken", "refused"))
    last = next(verdicts, None)
    if last is None or last[2] != tag:
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, is_pending=True)
    return TrialVerdict(outcome=TrialOutcome(last[1]), message=last[3])


def unfit_nodes(log: str, tag: str) -> Mapping[str, str] | None:
    """Return slurmctld's messages on the nodes that it would refuse, by the digest of a node's line; None if it has not judged this write."""
    lines = [line for line in _lines(log) if line[1] in ("unfit", "judged")]
    if not lines or (lines[0][1], lines[0][2]) != ("judged", tag):
        return None
    refused = itertools.takewhile(lambda line: line[1] == "unfit", lines[1:])
    return {line[2].split()[0]: line[3] for line in refused}


def without_write(data: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files of a ConfigMap without the one that names the write."""
    return {name: content for name, content in data.items() if name != trying.WRITE_FILE}


def name_write(
    desired: ConfigurationSet, data: Mapping[str, str], now: datetime
) -> ConfigurationSet:
    """Return files with the name of their write: the last one if it wrote the same, else a new one.

    Args:
        data: the data of their ConfigMap, empty if there is none.
        now: names a new write, because no two writes have the same time.
    """
    before = without_write(data)
    last = ConfigurationSet(files=before, generated=frozenset(before))
    is_same = trying.WRITE_FILE in data and last.digest == desired.digest
    return replace(desired, write=data[trying.WRITE_FILE] if is_same else now.isoformat())


def _has_new_conf(node_set: NodeSetObject) -> bool:
    conf = node_set.spec.extra_conf
    return bool(conf.strip()) and conf != node_set.status.accepted_conf


def node_digest(node_set: NodeSetObject) -> str:
    """Return the digest by which the side-car names a NodeSet's nodes."""
    return hashlib.sha256(node_line(node_set).encode()).hexdigest()


def _lines(log: str) -> Iterator[re.Match[str]]:
    """Yield the lines with verdicts, the last first."""
    return filter(None, map(_LINE.fullmatch, reversed(log.splitlines())))


def combine(verdicts: Sequence[TrialVerdict], daemon: str) -> TrialVerdict:
    """Return the verdict of all pods together: a refusal counts most, then a missing verdict."""
    for outcome in (TrialOutcome.REFUSED, TrialOutcome.NOT_TRIED, TrialOutcome.TAKEN):
        for pod_verdict in verdicts:
            if pod_verdict.outcome is outcome:
                return pod_verdict
    return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=f"there is no pod of {daemon} yet")


def _runs_trials(pod: DaemonPod) -> bool:
    return any(
        container.name == RECONFIGURE and container.is_running
        for container in pod.status.containers
    )


def start_verdict(status: PodStatus, name: str, tag: str) -> TrialVerdict:
    """Return a slurmdbd's verdict on its file: it has taken one only when it serves with it."""
    trial, daemon = (
        next(
            (container for container in status.containers if container.name == container_name),
            ContainerStatus(),
        )
        for container_name in (accounting.CONFIGURATION, accounting.SLURMDBD)
    )
    judged = verdict(trial.termination_message, tag)
    if judged.outcome is TrialOutcome.NOT_TRIED:
        return replace(judged, message=f"pod {name} is about to try it")
    if judged.outcome is TrialOutcome.TAKEN and not daemon.ready:
        message = f"slurmdbd of pod {name} can read it, but does not serve yet"
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=message, is_pending=True)
    return judged


@dataclass(slots=True)
class _PendingTrial:
    """A set that its daemon has not judged yet."""

    tag: str
    since: datetime
    nudges: int = 0


class Trials:
    """Asks the pods of Controllers and Accountings."""

    def __init__(self, kube: KubeClient, clock: Clock, tried: ConfTrials) -> None:
        self._kube = kube
        self._clock = clock
        self._tried = tried
        self._pending: dict[str, _PendingTrial] = {}

    async def slurmctld_verdict(self, part: ControllerObject, tag: str) -> TrialVerdict:
        """Return slurmctld's verdict on a set of files.

        Raises:
            KubeError: its pods were not listed: try again.
        """
        pods = await self._pods(part.metadata, "slurmctld")
        verdicts = [await self._pod_verdict(pod, tag) for pod in pods]
        return self._track(part.metadata.uid, tag, combine(verdicts, "slurmctld"))

    async def slurmdbd_verdict(self, part: AccountingObject, tag: str) -> TrialVerdict:
        """Return slurmdbd's verdict on a slurmdbd.conf.

        Raises:
            KubeError: its pods were not listed: try again.
        """
        pods = await self._pods(part.metadata, accounting.SLURMDBD)
        verdicts = [start_verdict(pod.status, pod.metadata.name, tag) for pod in pods]
        return self._track(part.metadata.uid, tag, combine(verdicts, accounting.SLURMDBD))

    def _track(self, uid: str, tag: str, judged: TrialVerdict) -> TrialVerdict:
        """Remember since when a verdict has been pending: one that takes very long is not polled for every second."""
        if judged.outcome is not TrialOutcome.NOT_TRIED:
            self._pending.pop(uid, None)
        elif not self._is_new(uid, tag):
            return replace(judged, is_pending=False)
        return judged

    async def try_nodes(
        self, part: ControllerObject, files: ConfigurationSet, node_sets: Iterable[NodeSetObject]
    ) -> bool:
        """Record slurmctld's verdicts on the nodes that workers will register; return whether more are expected soon.

        Raises:
            KubeError: its pods were not listed: try again.
        """
        to_try = [node_set for node_set in node_sets if _has_new_conf(node_set)]
        if not to_try:
            return False
        verdicts = _NodeVerdicts(refused={})
        lines = frozenset(files.files["slurm.conf"].split("\n"))
        if not part.spec.external:
            verdicts = await self._node_verdicts(part, files.tag)
        for node_set in to_try:
            tried = verdicts.of(node_set)
            if not part.spec.external and f"#{node_line(node_set)}" not in lines:
                message = f"Controller {part.metadata.name} has not accepted it: see its conditions"
                tried = replace(tried, is_known=False, words=message)
            self._tried.put(node_set.metadata.uid, tried)
        return verdicts.is_pending

    async def _node_verdicts(self, part: ControllerObject, tag: str) -> _NodeVerdicts:
        refused: dict[str, str] = {}
        pods = await self._pods(part.metadata, "slurmctld")
        message = "" if pods else _NO_POD
        for pod in pods:
            log = await self._log(pod)
            unfit = unfit_nodes(log, tag) if isinstance(log, str) else None
            if isinstance(log, TrialVerdict):
                message = log.message
            elif unfit is None:
                message = f"pod {pod.metadata.name} is about to try it"
            refused |= unfit or {}
        key = f"{part.metadata.uid} nodes"
        if message:
            return _NodeVerdicts(message=message, is_pending=self._is_new(key, tag))
        self._pending.pop(key, None)
        return _NodeVerdicts(refused=refused)

    def _is_new(self, key: str, tag: str) -> bool:
        trial = self._pending.get(key)
        if trial is None or trial.tag != tag:
            self._pending[key] = _PendingTrial(tag, self._clock.now())
            return True
        return self._clock.now() <= trial.since + _PENDING_FOR

    async def hurry(self, controller: ObjectMetadata, tag: str) -> PeerError | None:
        """Touch the pods, so that their kubelets sync new files at once and not within two minutes; return what failed."""
        trial = self._pending.get(controller.uid)
        if trial is None or trial.tag != tag or trial.nudges >= len(_NUDGES):
            return None
        if self._clock.now() < trial.since + _NUDGES[trial.nudges]:
            return None
        annotations = {CONFIGURATION_ANNOTATION: f"{tag} {trial.nudges + 1}"}
        try:
            pods = [pod for pod in await self._pods(controller, "slurmctld") if _runs_trials(pod)]
            trial.nudges += bool(pods)
            for pod in pods:
                await self._kube.request(
                    "PATCH",
                    paths.pod(pod.metadata.namespace, pod.metadata.name),
                    body={"metadata": {"annotations": annotations}},
                    content_type=MERGE_PATCH,
                )
        except NotFound:
            return None  # the pod has just gone
        except PEER_ERRORS as error:
            return error
        return None

    async def _pods(self, owner: ObjectMetadata, app: str) -> tuple[DaemonPod, ...]:
        labels = selecting(app, owner.name)
        pods = await workload.read_pods(self._kube, owner.namespace, labels, most=_MOST_PODS)
        return tuple(pod for pod in pods if pod.metadata.deletion_timestamp is None)

    async def _pod_verdict(self, pod: DaemonPod, tag: str) -> TrialVerdict:
        log = await self._log(pod)
        if isinstance(log, TrialVerdict):
            return log
        judged = verdict(log, tag)
        if judged.outcome is TrialOutcome.NOT_TRIED:
            message = f"pod {pod.metadata.name} is about to try it"
            return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=message, is_pending=True)
        return judged

    async def _log(self, pod: DaemonPod) -> str | TrialVerdict:
        """Return the log of a pod's side-car, or why it is unknown."""
        name = pod.metadata.name
        if not _runs_trials(pod):
            message = f"container {RECONFIGURE} of pod {name} is not running yet"
            return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=message, is_pending=True)
        where = paths.pod(pod.metadata.namespace, name) + "/log"
        params = {
            "container": RECONFIGURE,
            "tailLines": str(_MOST_LINES),
            "limitBytes": str(_MOST_BYTES),
        }
        try:
            async with asyncio.timeout(_LONGEST.total_seconds()):
                log = await self._kube.request("GET", where, params=params, accept="*/*")
        except (*PEER_ERRORS, TimeoutError) as error:
            message = f"the log of container {RECONFIGURE} of pod {name} was not read: {error}"
            return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=message)
        return log.decode(errors="replace")
