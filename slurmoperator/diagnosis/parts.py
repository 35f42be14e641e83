"""Select what belongs to one Slurm in pods, and describe the state of each part."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bridge.domain.diagnosis.queue import QueuedJob
from slurmoperator.clusters.slurm_cluster import WatchedCluster
from slurmoperator.daemons.part import PartObject, WatchedPart
from slurmoperator.keys.rotation import KEY_CONDITION
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import APP_LABEL, INSTANCE_LABEL
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.nodeset import NodeSetStatus
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
"""The daemon in the pods of each kind: their label's value and their container's name."""

_ORDER: Final = ("Controller", "Accounting", "RestApi", "LoginSet", "Token")
_DOCTOR: Final = "if this persists: kubectl slurm doctor"
_CONDITIONS: Final = ("Accepted", "Configured", "Ready", "Updated", "SlurmKnown", KEY_CONDITION)
"""Conditions that say what an object waits for, causes before effects."""


WatchedObject = WatchedCluster | WatchedPart | WatchedNodeSet


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceObjects:
    """The objects of Slurms in pods, in one namespace or in all."""

    clusters: Sequence[WatchedCluster] = ()
    parts: Sequence[WatchedPart] = ()
    node_sets: Sequence[WatchedNodeSet] = ()
    pods: Sequence[WorkerPodObject] = ()
    """Pods of all daemons, not only of workers."""

    @property
    def watched(self) -> list[WatchedObject]:
        """All objects but the pods; those that others need come first."""
        return [*self.clusters, *self.parts, *self.node_sets]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmInPods:
    """One Slurm in pods, as far as it can be read."""

    namespace: str
    name: str
    """The name of its Controller, and of its SlurmCluster if there is one."""
    objects: NamespaceObjects
    queue: Sequence[QueuedJob] | None = None
    """All of Slurm's jobs; None if Slurm was not asked."""
    slurm_nodes: Sequence[SlurmNodeFacts] | None = None
    """All of Slurm's nodes; None if Slurm was not asked."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLine:
    """The state of one object."""

    part: str
    """Kind and name."""
    state: str
    """`Ready`, or the reason of the first condition that is not `True`."""
    pods: str
    """Ready and all pods, `1/2`; "" if it has none."""
    version: str
    """Tags of the images that its daemons run, `26.05`; several during an update."""
    why: str
    """What it waits for; "" if nothing."""


def controllers(objects: NamespaceObjects) -> list[ObjectMetadata]:
    """Return the Controllers, one for each Slurm, sorted by namespace and name."""
    metadata = (part.metadata for part in objects.parts if part.kind == "Controller")
    return sorted(metadata, key=lambda meta: (meta.namespace, meta.name))


def select(objects: NamespaceObjects, namespace: str, name: str) -> NamespaceObjects:
    """Return the objects that belong to the Slurm of this Controller, and those that cannot be read: they might belong to any Slurm of the namespace."""
    in_namespace = [part for part in objects.parts if part.metadata.namespace == namespace]
    own = next(
        (part for part in in_namespace if part.kind == "Controller" and part.metadata.name == name),
        None,
    )
    controller = own.parsed if own and isinstance(own.parsed, ControllerObject) else None
    parts = [
        part
        for part in in_namespace
        if part is own or (part.kind != "Controller" and _is_of(part.parsed, name, controller))
    ]
    node_sets = [
        node_set
        for node_set in objects.node_sets
        if node_set.metadata.namespace == namespace
        and (node_set.parsed is None or node_set.parsed.spec.controller_ref.name == name)
    ]
    labels = {(DAEMONS.get(part.kind, ""), part.metadata.name) for part in parts}
    labels |= {(DAEMONS["NodeSet"], node_set.metadata.name) for node_set in node_sets}
    return NamespaceObjects(
        clusters=[
            cluster
            for cluster in objects.clusters
            if (cluster.metadata.namespace, cluster.metadata.name) == (namespace, name)
        ],
        parts=sorted(parts, key=lambda part: (_ORDER.index(part.kind), part.metadata.name)),
        node_sets=sorted(node_sets, key=lambda node_set: node_set.metadata.name),
        pods=[
            pod
            for pod in objects.pods
            if pod.metadata.namespace == namespace and _labels_of(pod) in labels
        ],
    )


def lines(slurm: SlurmInPods) -> list[PartLine]:
    """Return the state of each object; objects that others need come first."""
    objects = slurm.objects
    return [
        _line(watched, pods_of(objects, watched.kind, watched.metadata.name))
        for watched in objects.watched
    ]


def pods_of(objects: NamespaceObjects, kind: str, name: str) -> list[WorkerPodObject]:
    """Return the pods of one object."""
    return [pod for pod in objects.pods if _labels_of(pod) == (DAEMONS.get(kind), name)]


def summarize(
    metadata: ObjectMetadata, conditions: Iterable[ObjectCondition], fault: str = ""
) -> tuple[str, str]:
    """Return the state of an object in one word, and what it waits for; `fault` is why it cannot be read."""
    first = next(_unmet(metadata, conditions, fault), None)
    return first or ("Ready", "")


def problems(
    metadata: ObjectMetadata, conditions: Iterable[ObjectCondition], fault: str = ""
) -> Iterator[str]:
    """Yield everything that an object waits for, as text; arguments as of `summarize`."""
    for reason, message in _unmet(metadata, conditions, fault):
        yield f"{message} ({reason})" if message else reason


def _unmet(
    metadata: ObjectMetadata, conditions: Iterable[ObjectCondition], fault: str
) -> Iterator[tuple[str, str]]:
    by_type = {condition.type: condition for condition in conditions}
    if metadata.deletion_timestamp is not None:
        ready = by_type.get("Ready")
        yield "Deleting", ready.message if ready else ""
        return
    accepted = by_type.get("Accepted")
    if accepted is None:
        yield "NotTold", fault or f"slurm-operator has not reported its status yet; {_DOCTOR}"
    # Only Accepted shows this: some of the others keep their message for an older generation.
    elif (accepted.observed_generation or 0) < metadata.generation:
        yield "Outdated", f"slurm-operator has not processed its last change yet; {_DOCTOR}"
    for name in _CONDITIONS:
        if name in by_type and by_type[name].status != "True":
            yield by_type[name].reason, by_type[name].message


def _line(watched: WatchedObject, pods: Sequence[WorkerPodObject]) -> PartLine:
    kind, metadata = watched.kind, watched.metadata
    state, why = summarize(metadata, watched.status.conditions, watched.fault)
    ready = [
        pod
        for pod in pods
        if (condition := pod.status.condition("Ready")) and condition.status == "True"
    ]
    counts = f"{len(ready)}/{len(pods)}" if pods else ""
    if isinstance(watched.status, NodeSetStatus):  # out of the desired number, not the current one
        counts = f"{len(ready)}/{watched.status.desired}"
    return PartLine(
        part=f"{kind}/{metadata.name}",
        state=state,
        pods=counts,
        version=", ".join(_versions(DAEMONS.get(kind, ""), pods)),
        why=why or "; ".join(_waiting(state, pods)),
    )


def _waiting(state: str, pods: Sequence[WorkerPodObject]) -> Iterator[str]:
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
            if controller is None:
                return False
            key = controller.spec.jwt_key_ref or controller.spec.jwt_hs256_key_ref
            theirs = part.spec.jwt_key_ref or part.spec.jwt_hs256_key_ref
            return key is not None and theirs is not None and key.name == theirs.name
        case ControllerObject():
            return False


def _labels_of(pod: WorkerPodObject) -> tuple[str, str]:
    labels = pod.metadata.labels
    return labels.get(APP_LABEL, ""), labels.get(INSTANCE_LABEL, "")
