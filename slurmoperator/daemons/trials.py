"""What daemons make of a new configuration, from the containers that try it: pure, but for remembering since when a verdict has been awaited.

Those containers have no rights in Kubernetes and no port. The side-car that tries slurm.conf beside slurmctld writes the verdict to its
log; the container that tries slurmdbd.conf before slurmdbd starts writes it to its termination message.
"""

import enum
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from slurmoperator.configuration.rendering import UNNAMED_WRITE, ConfigurationSet
from slurmoperator.configuration.slurm_conf import node_line
from slurmoperator.nodesets.conf_trials import ConfTrial
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.pod_status import ContainerStatus, PodStatus
from slurmoperator.rendering import accounting, trying
from slurmoperator.rendering.body import PROVEN_ANNOTATION
from slurmoperator.rendering.controller import RECONFIGURE

_NO_POD: Final = "there is no pod of slurmctld yet"
_NUDGES: Final = (timedelta(0), timedelta(seconds=5), timedelta(seconds=15))
"""When a pod is touched after its files have changed, so that its kubelet syncs them. It may not know of them yet the first time."""
_PENDING_FOR: Final = timedelta(minutes=3)
"""How long a verdict is polled for at the short interval."""
POLL_INTERVAL: Final = timedelta(seconds=1)
"""How often the containers are asked for a pending verdict."""


@dataclass(frozen=True, slots=True)
class FilesInForce:
    """The configuration files that a daemon has."""

    files: ConfigurationSet
    is_proven: bool
    """Whether the daemon has been seen serving with them."""

    @classmethod
    def from_object(
        cls, files: Mapping[str, str], annotations: Mapping[str, str]
    ) -> "FilesInForce":
        """Return the files that a Kubernetes object holds, whose annotation says whether they are proven."""
        digest, _, write = annotations.get(PROVEN_ANNOTATION, "").partition(" ")
        write = write or UNNAMED_WRITE
        stored = ConfigurationSet(files=files, generated=frozenset(files), write=write)
        return cls(stored, is_proven=digest == stored.digest)

    def is_proven_to_be(self, files: ConfigurationSet) -> bool:
        """Check whether this write of these files is in force and proven."""
        return self.is_proven and self.files.tag == files.tag


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
class TrialPod:
    """A pod of a daemon, with what its side-car wrote."""

    name: str
    status: PodStatus
    log: str = ""
    """Of the container that tries slurm.conf; "" if it was not read."""
    trouble: str = ""
    """Why the log was not read although it matters; "" if it was."""


@dataclass(frozen=True, slots=True)
class PendingVerdict:
    """Files that a daemon has not judged yet."""

    tag: str
    since: datetime
    nudges: int = 0
    """How often its pods were touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTrials:
    """slurmctld's verdicts on the nodes that workers will register."""

    trials: Mapping[str, ConfTrial] = field(default_factory=dict)
    """By the uid of the NodeSet."""
    is_pending: bool = False
    """Whether more verdicts are expected soon."""
    awaited_tag: str = ""
    """The tag of files whose nodes slurmctld has not judged yet; "" for none."""


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


def are_logs_needed(
    in_force: FilesInForce | None,
    last: Mapping[str, str] | None,
    node_sets: Iterable[NodeSetObject],
) -> bool:
    """Check whether a log can have a verdict that matters: only on the files that were desired last, or on nodes."""
    if to_try(node_sets):
        return True
    if last is None or trying.WRITE_FILE not in last:
        return False
    files = without_write(last)
    written = ConfigurationSet(
        files=files, generated=frozenset(files), write=last[trying.WRITE_FILE]
    )
    return in_force is None or not in_force.is_proven_to_be(written)


def nodes_key(uid: str) -> str:
    """Return the key of the verdict on the nodes of a Controller's workers."""
    return f"{uid} nodes"


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


def runs_trials(status: PodStatus) -> bool:
    """Check whether the side-car of a pod tries configurations."""
    return any(
        container.name == RECONFIGURE and container.is_running for container in status.containers
    )


def slurmctld_verdict(pods: Sequence[TrialPod], tag: str) -> TrialVerdict:
    """Return slurmctld's verdict on a set of files."""
    return combine([_log_verdict(pod, tag) for pod in pods], "slurmctld")


def slurmdbd_verdict(pods: Sequence[TrialPod], tag: str) -> TrialVerdict:
    """Return slurmdbd's verdict on a slurmdbd.conf."""
    verdicts = [start_verdict(pod.status, pod.name, tag) for pod in pods]
    return combine(verdicts, accounting.SLURMDBD)


def _log_verdict(pod: TrialPod, tag: str) -> TrialVerdict:
    if not runs_trials(pod.status) or pod.trouble:
        is_pending = not runs_trials(pod.status)
        return TrialVerdict(
            outcome=TrialOutcome.NOT_TRIED, message=_why_unread(pod), is_pending=is_pending
        )
    judged = verdict(pod.log, tag)
    if judged.outcome is TrialOutcome.NOT_TRIED:
        return replace(judged, message=f"pod {pod.name} is about to try it")
    return judged


def _why_unread(pod: TrialPod) -> str:
    if not runs_trials(pod.status):
        return f"container {RECONFIGURE} of pod {pod.name} is not running yet"
    return pod.trouble


def to_try(node_sets: Iterable[NodeSetObject]) -> tuple[NodeSetObject, ...]:
    """Return the NodeSets whose nodes slurmctld has to try."""
    return tuple(node_set for node_set in node_sets if _has_new_conf(node_set))


def try_nodes(
    part: ControllerObject,
    files: ConfigurationSet,
    node_sets: Iterable[NodeSetObject],
    pods: Sequence[TrialPod],
) -> NodeTrials:
    """Return slurmctld's verdicts on the nodes that workers will register; an external one is not asked."""
    candidates = to_try(node_sets)
    if not candidates:
        return NodeTrials()
    if part.spec.external:
        return NodeTrials(
            trials={node_set.metadata.uid: _conf_trial(node_set, "") for node_set in candidates}
        )
    refused: dict[str, str] = {}
    unknown = "" if pods else _NO_POD
    for pod in pods:
        unfit = None
        if runs_trials(pod.status) and not pod.trouble:
            unfit = unfit_nodes(pod.log, files.tag)
        if unfit is None:
            unknown = _why_unread(pod) or f"pod {pod.name} is about to try it"
        refused |= unfit or {}
    lines = frozenset(files.files["slurm.conf"].split("\n"))
    trials: dict[str, ConfTrial] = {}
    for node_set in candidates:
        trial = _conf_trial(node_set, unknown or refused.get(node_digest(node_set), ""))
        if f"#{node_line(node_set)}" not in lines:
            message = f"Controller {part.metadata.name} has not accepted it: see its conditions"
            trial = replace(trial, is_known=False, words=message)
        elif unknown:
            trial = replace(trial, is_known=False)
        trials[node_set.metadata.uid] = trial
    return NodeTrials(
        trials=trials, is_pending=bool(unknown), awaited_tag=files.tag if unknown else ""
    )


def _conf_trial(node_set: NodeSetObject, words: str) -> ConfTrial:
    return ConfTrial(extra_conf=node_set.spec.extra_conf, is_known=True, words=words)


def is_soon(awaited: PendingVerdict | None, tag: str, now: datetime) -> bool:
    """Check whether a verdict may be expected soon: one that takes very long is not polled for every second."""
    return awaited is None or awaited.tag != tag or now <= awaited.since + _PENDING_FOR


def pods_to_nudge(
    pods: Iterable[TrialPod], awaited: PendingVerdict | None, tag: str, now: datetime
) -> Iterator[str]:
    """Yield the pods to be touched, so that their kubelets sync new files at once and not within two minutes."""
    if not tag:
        return
    if awaited is None or awaited.tag != tag:
        awaited = PendingVerdict(tag, now)
    if awaited.nudges < len(_NUDGES) and now >= awaited.since + _NUDGES[awaited.nudges]:
        yield from (pod.name for pod in pods if runs_trials(pod.status))


class PendingVerdicts:
    """Since when verdicts have been awaited, during one term of leadership."""

    def __init__(self) -> None:
        self._awaited: dict[str, PendingVerdict] = {}

    def of(self, key: str) -> PendingVerdict | None:
        """Return what is awaited for a key; None if nothing is."""
        return self._awaited.get(key)

    def note(self, key: str, tag: str, now: datetime) -> None:
        """Note that a verdict on these files is awaited; "" for none."""
        if not tag:
            self._awaited.pop(key, None)
        elif (awaited := self._awaited.get(key)) is None or awaited.tag != tag:
            self._awaited[key] = PendingVerdict(tag, now)

    def note_nudge(self, key: str) -> PendingVerdict:
        """Note that the pods are touched once more, and return what is awaited."""
        awaited = self._awaited[key]
        self._awaited[key] = replace(awaited, nudges=awaited.nudges + 1)
        return self._awaited[key]
