"""What belongs to one Slurm in pods, and how each part stands."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from bridge.domain.diagnosis.queue import QueuedJob
from slurmoperator.clusters.slurm_cluster import WatchedCluster
from slurmoperator.daemons.conditions import KEY_CONDITION
from slurmoperator.daemons.part import PartObject, WatchedPart
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import APP_LABEL, INSTANCE_LABEL
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.nodes import SlurmNodeFacts

DAEMONS: Final = {
    "Controller": "slurmctld",
    "Accounting": "slurmdbd",
    "RestApi": "slurmrestd",
    "LoginSet": "login",
    "NodeSet": "slurmd",
}
"""What runs in the pods of each kind: the value of their label, and their container's name."""

_ORDER: Final = ("Controller", "Accounting", "RestApi", "LoginSet", "Token")
_DOCTOR: Final = "if that lasts: kubectl slurm doctor"
_MATTER: Final = ("Accepted", "Configured", "Ready", "Updated", "SlurmKnown", KEY_CONDITION)
"""Conditions that say what an object waits for, the cause of the others first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceObjects:
    """What there is of Slurms in pods, in one namespace or in all."""

    clusters: Sequence[WatchedCluster] = ()
    parts: Sequence[WatchedPart] = ()
    node_sets: Sequence[WatchedNodeSet] = ()
    pods: Sequence[WorkerPodObject] = ()
    """Of all daemons, not only of workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmInPods:
    """One Slurm in pods, as far as it could be read."""

    namespace: str
    name: str
    """Of its Controller, and of its SlurmCluster if there is one."""
    objects: NamespaceObjects
    queue: Sequence[QueuedJob] | None = None
    """All of Slurm's jobs; None if Slurm was not asked."""
    slurm_nodes: Sequence[SlurmNodeFacts] | None = None
    """All of Slurm's nodes; likewise."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLine:
    """How one object stands."""

    part: str
    """Kind and name."""
    state: str
    """`Ready`, or the reason of the first condition that does not hold."""
    pods: str
    """How many are ready of how many, `1/2`; "" if it has none."""
    version: str
    """Tags of the images that its daemons run, `26.05`; several during an update."""
    why: str
    """What it waits for; "" if nothing."""


def controllers(found: NamespaceObjects) -> list[ObjectMetadata]:
    """Return the Controllers, one for each Slurm, by namespace and name."""
    those = (part.metadata for part in found.parts if part.kind == "Controller")
    return sorted(those, key=lambda meta: (meta.namespace, meta.name))


def belonging(found: NamespaceObjects, namespace: str, name: str) -> NamespaceObjects:
    """Return what belongs to the Slurm of this Controller.

    An object that cannot be read might belong to any Slurm of its namespace, and is shown with each.
    """
    here = [part for part in found.parts if part.metadata.namespace == namespace]
    own = next(
        (each for each in here if each.kind == "Controller" and each.metadata.name == name), None
    )
    controller = own.whole if own and isinstance(own.whole, ControllerObject) else None
    parts = [
        each
        for each in here
        if each is own or (each.kind != "Controller" and _is_of(each.whole, name, controller))
    ]
    node_sets = [
        each
        for each in found.node_sets
        if each.metadata.namespace == namespace
        and (each.whole is None or each.whole.spec.controller_ref.name == name)
    ]
    kinds = {(DAEMONS.get(part.kind, ""), part.metadata.name) for part in parts}
    kinds |= {(DAEMONS["NodeSet"], each.metadata.name) for each in node_sets}
    return NamespaceObjects(
        clusters=[
            cluster
            for cluster in found.clusters
            if (cluster.metadata.namespace, cluster.metadata.name) == (namespace, name)
        ],
        parts=sorted(parts, key=lambda part: (_ORDER.index(part.kind), part.metadata.name)),
        node_sets=sorted(node_sets, key=lambda each: each.metadata.name),
        pods=[
            pod
            for pod in found.pods
            if pod.metadata.namespace == namespace and _labelled(pod) in kinds
        ],
    )


def lines(slurm: SlurmInPods) -> list[PartLine]:
    """Return how each object stands, those first that others need."""
    found = slurm.objects
    return [
        *(
            _line("SlurmCluster", cluster.metadata, cluster.status.conditions, cluster.fault, ())
            for cluster in found.clusters
        ),
        *(
            _line(
                part.kind,
                part.metadata,
                part.status.conditions,
                part.fault,
                pods_of(found, part.kind, part.metadata.name),
            )
            for part in found.parts
        ),
        *(_node_set_line(each, found) for each in found.node_sets),
    ]


def pods_of(found: NamespaceObjects, kind: str, name: str) -> list[WorkerPodObject]:
    """Return the pods of one object."""
    return [pod for pod in found.pods if _labelled(pod) == (DAEMONS.get(kind), name)]


def standing(
    metadata: ObjectMetadata, conditions: Iterable[ObjectCondition], fault: str = ""
) -> tuple[str, str]:
    """Return how an object stands, in one word, and what it waits for.

    fault: why it cannot be read; "" if it can.
    """
    first = next(_not_holding(metadata, conditions, fault), None)
    return first or ("Ready", "")


def troubles(
    metadata: ObjectMetadata, conditions: Iterable[ObjectCondition], fault: str = ""
) -> Iterator[str]:
    """Yield everything that an object waits for, in words; like `standing`."""
    for reason, message in _not_holding(metadata, conditions, fault):
        yield f"{message} ({reason})" if message else reason


def _not_holding(
    metadata: ObjectMetadata, conditions: Iterable[ObjectCondition], fault: str
) -> Iterator[tuple[str, str]]:
    told = {condition.type: condition for condition in conditions}
    if metadata.deletion_timestamp is not None:
        ready = told.get("Ready")
        yield "Deleting", ready.message if ready else ""
        return
    accepted = told.get("Accepted")
    if accepted is None:
        yield "NotTold", fault or f"slurm-operator has not told yet how it stands; {_DOCTOR}"
    # Of the others, some keep what they said of an older one.
    elif (accepted.observed_generation or 0) < metadata.generation:
        yield "Outdated", f"slurm-operator has not taken its change in yet; {_DOCTOR}"
    for kind in _MATTER:
        if kind in told and told[kind].status != "True":
            yield told[kind].reason, told[kind].message


def _node_set_line(found: WatchedNodeSet, objects: NamespaceObjects) -> PartLine:
    pods = pods_of(objects, "NodeSet", found.metadata.name)
    line = _line("NodeSet", found.metadata, found.status.conditions, found.fault, pods)
    ready = line.pods.partition("/")[0] or "0"  # of as many as are wanted, not as there are
    return replace(line, pods=f"{ready}/{found.status.desired}")


def _line(
    kind: str,
    metadata: ObjectMetadata,
    conditions: Sequence[ObjectCondition],
    fault: str,
    pods: Sequence[WorkerPodObject],
) -> PartLine:
    state, why = standing(metadata, conditions, fault)
    ready = [
        pod for pod in pods if (found := pod.status.condition("Ready")) and found.status == "True"
    ]
    return PartLine(
        part=f"{kind}/{metadata.name}",
        state=state,
        pods=f"{len(ready)}/{len(pods)}" if pods else "",
        version=", ".join(_versions(DAEMONS.get(kind, ""), pods)),
        why=why or "; ".join(_waiting(state, pods)),
    )


def _waiting(state: str, pods: Sequence[WorkerPodObject]) -> Iterator[str]:
    """Yield what pods wait for, where nobody has said it."""
    if state != "Ready":
        for pod in pods:
            for why in why_not_ready(pod.status):
                yield f"pod {pod.metadata.name}: {why}"


def _versions(daemon: str, pods: Iterable[WorkerPodObject]) -> list[str]:
    images = {
        container_status.image
        for pod in pods
        for container_status in pod.status.container_statuses or ()
        if container_status.name == daemon and container_status.image
    }
    return sorted(_tag(image) for image in images)


def _tag(image: str) -> str:
    """Return an image's tag, or all of it if it has none."""
    name = image.partition("@")[0]
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or image


def _is_of(part: PartObject | None, name: str, controller: ControllerObject | None) -> bool:
    match part:
        case None:
            return True
        case RestApiObject() | LoginSetObject():
            return part.spec.controller_ref.name == name
        case AccountingObject():
            ref = controller.spec.accounting_ref if controller else None
            return ref is not None and ref.name == part.metadata.name
        case TokenObject():
            key = (
                controller.spec.jwt_key_ref or controller.spec.jwt_hs256_key_ref
                if controller
                else None
            )
            theirs = part.spec.jwt_key_ref or part.spec.jwt_hs256_key_ref
            return key is not None and theirs is not None and key.name == theirs.name
        case ControllerObject():
            return False


def _labelled(pod: WorkerPodObject) -> tuple[str, str]:
    labels = pod.metadata.labels
    return labels.get(APP_LABEL, ""), labels.get(INSTANCE_LABEL, "")
