"""What daemons make of a new configuration, from the containers that try it: pure.

Those containers have no rights in Kubernetes and no port. The side-car that tries slurm.conf beside slurmctld writes the verdict to its
log; the container that tries slurmdbd.conf before slurmdbd starts writes it to its termination message.
"""

import enum
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from slurmoperator.configuration import refusals, slurmdbd_conf
from slurmoperator.configuration.refusals import UserLine
from slurmoperator.configuration.rendering import UNNAMED_WRITE, ConfigurationSet, FilesInForce
from slurmoperator.configuration.slurm_conf import node_line
from slurmoperator.daemons.situation import (
    AccountingFacts,
    ControllerFacts,
    FilesVerdict,
    PendingVerdict,
    TrialPod,
)
from slurmoperator.nodesets.conf_trials import ConfTrial
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.pod_status import ContainerStatus, PodStatus
from slurmoperator.rendering import accounting, trying
from slurmoperator.rendering.controller import RECONFIGURE

_NO_POD: Final = "there is no pod of slurmctld yet"
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


_LINE: Final = re.compile(
    rf"{trying.LOG_PREFIX} (taken|refused|unfit|judged) ([0-9a-f]{{64}} \S*) ?(.*)"
)


_FILES: Final = {"slurmctld": "slurm.conf", "slurmdbd": slurmdbd_conf.FILE}
"""The file of each daemon that contains lines of users."""


def of_slurmctld(
    facts: ControllerFacts,
    desired: ConfigurationSet,
    node_sets: Iterable[NodeSetObject],
    user_lines: Iterable[UserLine],
) -> FilesVerdict:
    """Return what slurmctld makes of files, of which users wrote some lines, and of its workers' nodes; an external one is not asked."""
    is_external, in_force = facts.part.spec.external, facts.in_force
    files = desired if is_external else _name_write(desired, facts.last, facts.now)
    if is_external or (in_force is not None and in_force.is_proven_to_be(files)):
        trial = TrialVerdict(outcome=TrialOutcome.TAKEN)
    else:
        trial = combine([_log_verdict(pod, files.tag) for pod in facts.pods], "slurmctld")
    judged = _judge(facts, files, trial, "slurmctld", user_lines)
    node_trials, awaited = _try_nodes(facts, files, node_sets)
    is_soon = awaited is not None and _is_soon(awaited, facts.now)
    return replace(
        judged,
        node_trials=node_trials,
        awaited_nodes=awaited,
        is_pending=judged.is_pending or is_soon,
        hurried_pods=tuple(_pods_to_nudge(facts, judged.awaited)) if judged.is_pending else (),
    )


def of_slurmdbd(
    facts: AccountingFacts, desired: ConfigurationSet, user_lines: Iterable[UserLine]
) -> FilesVerdict:
    """Return what slurmdbd makes of a slurmdbd.conf."""
    verdicts = [start_verdict(pod.status, pod.name, desired.tag) for pod in facts.pods]
    return _judge(facts, desired, combine(verdicts, "slurmdbd"), "slurmdbd", user_lines)


def _judge(
    facts: ControllerFacts | AccountingFacts,
    desired: ConfigurationSet,
    trial: TrialVerdict,
    daemon: str,
    user_lines: Iterable[UserLine],
) -> FilesVerdict:
    """Explain a daemon's verdict on files, and decide which files it has until it takes them."""
    awaited = None
    if trial.outcome is TrialOutcome.NOT_TRIED:
        awaited = _await(facts.awaited, desired.tag, facts.now)
    in_force = facts.in_force
    # The files in force are tried again at each start, perhaps by another version of the daemon.
    # Until that has judged them, they count as taken.
    if awaited and in_force and in_force.is_proven_to_be(desired):
        trial = TrialVerdict(outcome=TrialOutcome.TAKEN)
    is_taken = trial.outcome is TrialOutcome.TAKEN
    before = in_force if in_force is not None and in_force.is_proven else None
    served = before if before and not is_taken else FilesInForce(desired, is_proven=is_taken)
    refused = ""
    if trial.outcome is TrialOutcome.REFUSED:
        refused = refusals.explain(
            trial.message,
            daemon,
            user_lines,
            wanted=desired.files.get(_FILES[daemon], ""),
            in_force=before.files.files.get(_FILES[daemon], "") if before else "",
        )
    is_in_force = served.is_proven and not (refused and served.files.digest == desired.digest)
    return FilesVerdict(
        desired=desired,
        served=served,
        refused=refused,
        not_tried=trial.message if trial.outcome is TrialOutcome.NOT_TRIED else "",
        digest=served.files.digest if is_in_force else "",
        awaited=awaited,
        is_pending=trial.is_pending and awaited is not None and _is_soon(awaited, facts.now),
    )


def _await(before: PendingVerdict | None, tag: str, now: datetime) -> PendingVerdict:
    return before if before is not None and before.tag == tag else PendingVerdict(tag, now)


def _is_soon(awaited: PendingVerdict, now: datetime) -> bool:
    """Check whether a verdict may be expected soon: one that takes very long is not polled for every second."""
    return now <= awaited.since + _PENDING_FOR


def _pods_to_nudge(facts: ControllerFacts, awaited: PendingVerdict | None) -> Iterator[str]:
    """Yield the pods to be touched, so that their kubelets sync new files at once and not within two minutes."""
    if awaited is None or awaited.nudges >= len(_NUDGES):
        return
    if facts.now >= awaited.since + _NUDGES[awaited.nudges]:
        yield from (pod.name for pod in facts.pods if pod.status.is_running(RECONFIGURE))


def _name_write(
    desired: ConfigurationSet, last: ConfigurationSet | None, now: datetime
) -> ConfigurationSet:
    """Return files with the name of their write: that of the last if it wrote the same, else the time, as no two writes share one."""
    is_same = last is not None and last.write != UNNAMED_WRITE and last.digest == desired.digest
    return replace(desired, write=last.write if last and is_same else now.isoformat())


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


def node_digest(node_set: NodeSetObject) -> str:
    """Return the digest by which the side-car names a NodeSet's nodes."""
    return hashlib.sha256(node_line(node_set).encode()).hexdigest()


def _lines(log: str) -> Iterator[re.Match[str]]:
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
    by_name = {container.name: container for container in reversed(status.containers)}
    trial = by_name.get(accounting.CONFIGURATION, ContainerStatus())
    judged = verdict(trial.termination_message, tag)
    if judged.outcome is TrialOutcome.NOT_TRIED:
        return replace(judged, message=f"pod {name} is about to try it")
    is_serving = by_name.get(accounting.SLURMDBD, ContainerStatus()).ready
    if judged.outcome is TrialOutcome.TAKEN and not is_serving:
        message = f"slurmdbd of pod {name} can read it, but does not serve yet"
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=message, is_pending=True)
    return judged


def _log_verdict(pod: TrialPod, tag: str) -> TrialVerdict:
    if why := _why_unread(pod):
        is_pending = not pod.status.is_running(RECONFIGURE)
        return TrialVerdict(outcome=TrialOutcome.NOT_TRIED, message=why, is_pending=is_pending)
    judged = verdict(pod.log, tag)
    if judged.outcome is TrialOutcome.NOT_TRIED:
        return replace(judged, message=f"pod {pod.name} is about to try it")
    return judged


def _why_unread(pod: TrialPod) -> str:
    if not pod.status.is_running(RECONFIGURE):
        return f"container {RECONFIGURE} of pod {pod.name} is not running yet"
    return pod.trouble


def _try_nodes(
    facts: ControllerFacts, files: ConfigurationSet, node_sets: Iterable[NodeSetObject]
) -> tuple[dict[str, ConfTrial], PendingVerdict | None]:
    """Return slurmctld's verdicts on the nodes that workers will register, and the one that is awaited; an external one is not asked."""
    candidates = [node_set for node_set in node_sets if node_set.has_new_conf]
    if facts.part.spec.external or not candidates:
        return {node_set.metadata.uid: _conf_trial(node_set, "") for node_set in candidates}, None
    refused: dict[str, str] = {}
    unknown = "" if facts.pods else _NO_POD
    for pod in facts.pods:
        why = _why_unread(pod)
        unfit = None if why else unfit_nodes(pod.log, files.tag)
        if unfit is None:
            unknown = why or f"pod {pod.name} is about to try it"
        refused |= unfit or {}
    lines = frozenset(files.files["slurm.conf"].split("\n"))
    trials: dict[str, ConfTrial] = {}
    for node_set in candidates:
        doubt = unknown
        if f"#{node_line(node_set)}" not in lines:
            doubt = f"Controller {facts.part.metadata.name} has not accepted it: see its conditions"
        words = doubt or refused.get(node_digest(node_set), "")
        trials[node_set.metadata.uid] = _conf_trial(node_set, words, is_known=not doubt)
    awaited = _await(facts.awaited_nodes, files.tag, facts.now) if unknown else None
    return trials, awaited


def _conf_trial(node_set: NodeSetObject, words: str, *, is_known: bool = True) -> ConfTrial:
    return ConfTrial(extra_conf=node_set.spec.extra_conf, is_known=is_known, words=words)
