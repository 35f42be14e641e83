"""Plans what becomes of the objects of a SlurmCluster: pure, from what one look has read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slurmoperator.clusters import expanding, yielding
from slurmoperator.clusters.yielding import RemainingBody
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION, takes_over
from slurmoperator.objects.own.slurm_cluster import SlurmClusterObject
from slurmoperator.rendering.body import identity
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube.apply import ownership
from slurmruntime.kube.apply.owned_objects import ObjectOwner
from slurmruntime.kube.apply.ownership import Ownership, OwnershipMetadata
from slurmruntime.model.objects import JsonObject

MANAGER: Final = "slurm-bridge-cluster"
"""Our field manager on the objects of SlurmClusters."""

ObjectId = tuple[str, str]
"""Kind and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSituation:
    """What one look at a SlurmCluster has read."""

    cluster: SlurmClusterObject
    desired: Sequence[JsonObject]
    """The objects that it expands into, in the order in which they are applied."""
    existing: Mapping[ObjectId, OwnershipMetadata]
    """The objects that have the names of the desired ones."""
    children: Sequence[ObjectId] = ()
    """The objects of the six kinds that belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPlan:
    """One object that should exist, and how it gets there."""

    remaining: RemainingBody
    uid: str = ""
    """Of the object that has the name now; "" if there is none."""
    is_in_force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """What to do about all objects of a SlurmCluster."""

    refused: str = ""
    """Why nothing is done; "" if something is."""
    objects: tuple[ObjectPlan, ...] = ()
    late: tuple[str, ...] = ()
    """Messages about objects that are being deleted, and come back once they are gone."""
    unwanted: tuple[JsonObject, ...] = ()
    """Objects that we may have created and that are no longer desired; none while it is doubtful whether the desired ones are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """What to do about a deleted SlurmCluster."""

    unwanted: tuple[JsonObject, ...] = ()
    """Its NodeSets, whose workers go when their jobs have ended."""
    waits: tuple[str, ...] = ()


def object_owner(metadata: ObjectMetadata) -> ObjectOwner:
    """Return how the objects of a SlurmCluster are written."""
    return ObjectOwner(uid=metadata.uid, manager=MANAGER, takes_over=takes_over(metadata))


def object_id(body: JsonObject) -> ObjectId:
    """Return the kind and name of a body."""
    return str(body["kind"]), str(body["metadata"]["name"])


def plan(situation: ClusterSituation) -> ClusterPlan:
    """Return what to do; nothing at all while an object that is not ours has one of the names."""
    owner = object_owner(situation.cluster.metadata)
    objects: list[ObjectPlan] = []
    late: list[str] = []
    for body in situation.desired:
        existing = situation.existing.get(object_id(body))
        remaining = RemainingBody(body, ())
        if not owner.takes_over:
            remaining = yielding.drop_foreign_fields(body, existing, owner.manager)
        verdict = ownership.judge(
            existing,
            remaining.body,
            owner_uid=owner.uid,
            manager=owner.manager,
            takes_over=owner.takes_over,
        )
        if verdict.ownership is Ownership.NOT_OURS:
            hint = f"delete it, choose another name for the SlurmCluster, or annotate the SlurmCluster with {TAKE_OVER_ANNOTATION}=true to take over what no other controller owns"
            return ClusterPlan(refused=f"{verdict.reason}; {hint}")
        if verdict.ownership is Ownership.LEAVING:
            late.append(verdict.reason)
            continue
        is_in_force = verdict.ownership is Ownership.IN_FORCE
        uid = existing.uid if existing else ""
        objects.append(ObjectPlan(remaining=remaining, uid=uid, is_in_force=is_in_force))
    unwanted = () if late else tuple(_unwanted(situation))
    return ClusterPlan(objects=tuple(objects), late=tuple(late), unwanted=unwanted)


def plan_release(namespace: str, node_sets: Mapping[str, bool]) -> ReleasePlan:
    """Return what to do about a deleted SlurmCluster with these NodeSets: those that are ours are deleted, and all else stays until they are gone."""
    return ReleasePlan(
        unwanted=tuple(
            identity("NodeSet", namespace, name) for name, is_ours in node_sets.items() if is_ours
        ),
        waits=tuple(_waits(node_sets)),
    )


def _unwanted(situation: ClusterSituation) -> Iterator[JsonObject]:
    metadata = situation.cluster.metadata
    desired = {object_id(body) for body in situation.desired}
    for kind, name in situation.children:
        if (kind, name) not in desired:
            yield identity(kind, metadata.namespace, name)
    for extra in expanding.extra_objects(metadata):
        if object_id(extra) not in desired:
            yield extra


def _waits(node_sets: Mapping[str, bool]) -> Iterator[str]:
    ours = sorted(name for name, is_ours in node_sets.items() if is_ours)
    theirs = sorted(name for name, is_ours in node_sets.items() if not is_ours)
    if ours:
        yield f"waiting for the jobs on the workers of NodeSet {', '.join(ours)}"
    if theirs:
        blocker = (
            f"NodeSet {', '.join(theirs)} belongs to it, but another manager has taken it over"
        )
        yield f"{blocker}: delete it, or remove its owner reference to keep it"
