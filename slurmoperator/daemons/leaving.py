"""What a deleted object of the control plane waits for: all that lives and cannot do without it.

Workers cannot be drained without a slurmrestd, and their jobs end badly without slurmctld, so these stay until the last worker is
gone. What names them is read from the API server itself, not from a cache: a NodeSet that a watch has not told yet has jobs, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from slurmruntime.kube.apply import standing, writes
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import Json, ResourceKind

_READ: Final = {
    "NodeSet": NODE_SET.plural,
    **{kind: PART_KINDS[kind].plural for kind in ("LoginSet", "RestApi", "Controller")},
}
"""What may need another object: plurals by kind."""


class _Named(ObjectStruct, frozen=True):
    name: str = ""


class _Spec(ObjectStruct, frozen=True):
    controller_ref: _Named = _Named()
    accounting_ref: _Named | None = None
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
    """An object of the same namespace, by what it names."""

    kind: str
    name: str
    is_leaving: bool = False
    is_odd: bool = False
    """It cannot be read, so it may name anything."""
    controller: str = ""
    """The Controller that it names; "" for none."""
    accounting: str = ""
    """The Accounting that it names, likewise."""
    replicas: int = 1


def needed_by(kind: str, name: str, around: Sequence[Neighbour]) -> tuple[Neighbour, ...]:
    """Return what cannot do without an object: pure.

    Args:
        kind: of the object.
        name: its name.
        around: all of its namespace that may need another one.
    """
    return tuple(_needed_by(kind, name, around))


def _needed_by(kind: str, name: str, around: Sequence[Neighbour]) -> Iterator[Neighbour]:
    match kind:
        case "Controller":
            for each in around:
                if each.kind != "Controller" and (each.is_odd or each.controller == name):
                    yield each
        case "RestApi":
            controller = _asked_through(name, around)
            for each in around:
                is_its = each.is_odd or each.controller == controller
                if controller and each.kind == "NodeSet" and is_its:
                    yield each
        case "Accounting":
            for each in around:
                if each.kind == "Controller" and (each.is_odd or each.accounting == name):
                    yield each
        case _:
            return


def _asked_through(rest_api: str, around: Sequence[Neighbour]) -> str:
    """Return the Controller that nobody could ask any more without this RestApi; "" if there is none."""
    own = next((each for each in around if (each.kind, each.name) == ("RestApi", rest_api)), None)
    if own is None or own.is_odd or not own.replicas:
        return ""
    others = (each for each in around if each.kind == "RestApi" and each.name != rest_api)
    has_another = any(
        other.controller == own.controller and other.replicas and not other.is_leaving
        for other in others
    )
    return "" if has_another else own.controller


def said(needed: Sequence[Neighbour]) -> str:
    """Return what a deleted object waits for, and what a person has to do."""
    names = ", ".join(_called(each) for each in needed)
    text = f"it is deleted, and stays in force until these are gone, which need it: {names}"
    if stay := [each for each in needed if not each.is_leaving]:
        text += f"; delete {', '.join(_called(each) for each in stay)}"
    return text


async def let_go(client: KubeClient, found: WatchedPart) -> str:
    """Let a deleted object go if nothing needs it; return what it waits for, "" if nothing does.

    Raises:
        KubeError: it is not known what needs it, or it was not let go: look again.
    """
    own = PART_KINDS[found.kind]
    if not own.holds(found):
        return ""
    if not found.is_orphaning:  # or what was made for it stays
        around = await _around(client, found.metadata.namespace)
        needed = needed_by(found.kind, found.metadata.name, around)
        if needed and not await _was_orphaning(client, found):
            return said(needed)
    await own.let_go(client, found)
    return ""


async def _was_orphaning(client: KubeClient, found: WatchedPart) -> bool:
    """Check whether all that was made for a deleted object is left without it, so that it stays.

    The garbage collector may have taken its finalizer off again before anybody looked. It does so last: while anything still belongs
    to the object, that would be deleted with it.
    """
    meta, is_left = found.metadata, False
    for leftover in leftovers(found.kind, meta, ()):
        try:
            made = await writes.find(client, leftover)
        except errors.Forbidden:
            return False  # in a namespace that is not served any more
        if made is None:
            continue
        if any(owner.uid == meta.uid for owner in made.owner_references):
            return False
        is_left = is_left or standing.held_by(made, MANAGER) is not None
    return is_left


async def _around(client: KubeClient, namespace: str) -> list[Neighbour]:
    return [
        each
        for kind, plural in _READ.items()
        for each in await lists.listing(client, _neighbours(kind, plural), namespace=namespace)
    ]


def _neighbours(kind: str, plural: str) -> ResourceKind[Neighbour]:
    return ResourceKind(
        path=paths.collection(API_VERSION, plural),
        read=lambda body: _read(kind, body),
        key=lambda found: found.name,
        version=lambda _: "",
    )


def _read(kind: str, body: Json) -> Neighbour:
    try:
        found = _object.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        meta = resource.decoded(_only_metadata, kind, body).metadata
        is_leaving = meta.deletion_timestamp is not None
        return Neighbour(kind=kind, name=meta.name, is_leaving=is_leaving, is_odd=True)
    return Neighbour(
        kind=kind,
        name=found.metadata.name,
        is_leaving=found.metadata.deletion_timestamp is not None,
        controller=found.spec.controller_ref.name,
        accounting=found.spec.accounting_ref.name if found.spec.accounting_ref else "",
        replicas=found.spec.replicas,
    )


def _called(each: Neighbour) -> str:
    return f"{each.kind} {each.name}"
