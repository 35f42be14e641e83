"""Keeps a deleted object of the control plane until nothing needs it any more.

Workers cannot be drained without a slurmrestd, and their jobs end badly without slurmctld, so these stay until the last worker is
gone. The objects that refer to them are read from the API server, not from a cache: a NodeSet that no watch has shown yet has jobs, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec

from slurmoperator.daemons.part import PART_KINDS, WatchedPart
from slurmoperator.nodesets.nodeset import NODE_SET
from slurmoperator.objects.labels import MANAGER
from slurmoperator.objects.parts import API_VERSION
from slurmoperator.rendering.leftovers import leftovers
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, lists, paths, resource
from slurmruntime.kube.apply import ownership, writes
from slurmruntime.kube.apply.ownership import OwnershipMetadata
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind

_READ: Final = {
    "NodeSet": NODE_SET.plural,
    **{kind: PART_KINDS[kind].plural for kind in ("LoginSet", "RestApi", "Controller")},
}
"""Kinds whose objects may need another one, with their plurals."""


class _Reference(ObjectStruct, frozen=True):
    name: str = ""


class _Spec(ObjectStruct, frozen=True):
    controller_ref: _Reference = _Reference()
    accounting_ref: _Reference | None = None
    replicas: int = 1


class _Object(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: _Spec = _Spec()


class _OnlyMetadata(ObjectStruct, frozen=True):
    metadata: ObjectMetadata


_object = msgspec.json.Decoder(_Object)
_only_metadata = msgspec.json.Decoder(_OnlyMetadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An object of the same namespace, and what it refers to."""

    kind: str
    name: str
    is_deleting: bool = False
    is_unreadable: bool = False
    """Then it may refer to anything."""
    controller: str = ""
    """The Controller that it refers to; "" for none."""
    accounting: str = ""
    """The Accounting that it refers to; "" for none."""
    replicas: int = 1


def dependents(kind: str, name: str, neighbours: Sequence[Neighbour]) -> Iterator[Neighbour]:
    """Yield those neighbours that need an object: pure."""
    match kind:
        case "Controller":
            for other in neighbours:
                if other.kind != "Controller" and (other.is_unreadable or other.controller == name):
                    yield other
        case "RestApi":
            controller = _served_only_by(name, neighbours)
            for other in neighbours:
                is_its = other.is_unreadable or other.controller == controller
                if controller and other.kind == "NodeSet" and is_its:
                    yield other
        case "Accounting":
            for other in neighbours:
                if other.kind == "Controller" and (other.is_unreadable or other.accounting == name):
                    yield other
        case _:
            return


def _served_only_by(rest_api: str, neighbours: Sequence[Neighbour]) -> str:
    """Return the Controller that has no other working RestApi than this; "" if there is none."""
    rest_apis = [neighbour for neighbour in neighbours if neighbour.kind == "RestApi"]
    own = next((other for other in rest_apis if other.name == rest_api), None)
    if own is None or own.is_unreadable or not own.replicas:
        return ""
    has_another = any(
        other.controller == own.controller and other.replicas and not other.is_deleting
        for other in rest_apis
        if other.name != rest_api
    )
    return "" if has_another else own.controller


def explain(blockers: Sequence[Neighbour]) -> str:
    """Return what a deleted object waits for, and what the user has to do."""
    names = ", ".join(_label(blocker) for blocker in blockers)
    text = f"being deleted; it stays in force until the objects that need it are gone: {names}"
    if not_deleted := [blocker for blocker in blockers if not blocker.is_deleting]:
        text += f"; delete {', '.join(_label(blocker) for blocker in not_deleted)}"
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionFacts:
    """What was read of a deleted object that has our finalizer."""

    kind: str
    name: str
    uid: str
    is_orphaning: bool = False
    """It is deleted with `--cascade=orphan`; then nothing else was read."""
    neighbours: tuple[Neighbour, ...] = ()
    """All objects of its namespace that may need another one."""
    children: tuple[OwnershipMetadata, ...] = ()
    """What exists of all that may have been created for it; none if the namespace is not served any more."""


def why_waiting(facts: DeletionFacts) -> str:
    """Return what a deleted object waits for; "" if it may go: nothing that is known, or cannot be read, needs it."""
    if facts.is_orphaning:
        return ""
    blockers = list(dependents(facts.kind, facts.name, facts.neighbours))
    return explain(blockers) if blockers and not _is_detached(facts) else ""


def _is_detached(facts: DeletionFacts) -> bool:
    """Check whether everything that was made for a deleted object has been detached from it, and so stays.

    The garbage collector may have removed its own finalizer before we looked. It does so last: whatever still belongs to the object
    would be deleted with it.
    """
    owners = {owner.uid for child in facts.children for owner in child.owner_references}
    return facts.uid not in owners and any(
        ownership.held_by(child, MANAGER) is not None for child in facts.children
    )


async def release(client: KubeClient, watched: WatchedPart) -> str:
    """Remove our finalizer from a deleted object if nothing needs it; return what it waits for, "" if nothing does.

    Raises:
        KubeError: its dependents were not read, or the finalizer was not removed: try again.
    """
    own = PART_KINDS[watched.kind]
    if not own.has_finalizer(watched):
        return ""
    waits = why_waiting(await _gather(client, watched))
    if watched.is_orphaning:
        await _detach(client, watched)
    if not waits:
        await own.remove_finalizer(client, watched)
    return waits


async def _gather(client: KubeClient, watched: WatchedPart) -> DeletionFacts:
    meta = watched.metadata
    facts = DeletionFacts(
        kind=watched.kind, name=meta.name, uid=meta.uid, is_orphaning=watched.is_orphaning
    )
    if watched.is_orphaning:
        return facts
    facts = replace(facts, neighbours=tuple(await _neighbours(client, meta.namespace)))
    bodies = leftovers(watched.kind, meta, ())
    try:
        children = [await writes.find(client, body) for body in bodies]
    except errors.Forbidden:
        return facts  # the namespace is not served any more
    return replace(facts, children=tuple(filter(None, children)))


async def _detach(client: KubeClient, watched: WatchedPart) -> None:
    """Detach what was created for an object that is deleted with `--cascade=orphan`, whatever the garbage collector has seen."""
    meta = watched.metadata
    for body in leftovers(watched.kind, meta, ()):
        try:
            await writes.detach(client, body, owner_uid=meta.uid)
        except errors.Forbidden:
            return  # the namespace is not served any more: the garbage collector does it alone


async def _neighbours(client: KubeClient, namespace: str) -> list[Neighbour]:
    neighbours: list[Neighbour] = []
    for kind, plural in _READ.items():
        resource_kind = ResourceKind(
            path=paths.collection(API_VERSION, plural),
            read=partial(_read, kind),
            identify=lambda neighbour: ObjectVersion(neighbour.name, "", neighbour.name),
        )
        neighbours += await lists.listing(client, resource_kind, namespace=namespace)
    return neighbours


def _read(kind: str, body: Json) -> Neighbour:
    try:
        parsed = _object.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        meta = resource.decoded(_only_metadata, kind, body).metadata
        is_deleting = meta.deletion_timestamp is not None
        return Neighbour(kind=kind, name=meta.name, is_deleting=is_deleting, is_unreadable=True)
    return Neighbour(
        kind=kind,
        name=parsed.metadata.name,
        is_deleting=parsed.metadata.deletion_timestamp is not None,
        controller=parsed.spec.controller_ref.name,
        accounting=parsed.spec.accounting_ref.name if parsed.spec.accounting_ref else "",
        replicas=parsed.spec.replicas,
    )


def _label(neighbour: Neighbour) -> str:
    return f"{neighbour.kind} {neighbour.name}"
