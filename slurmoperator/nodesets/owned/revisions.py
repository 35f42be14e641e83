"""The templates that NodeSets have had, as ControllerRevisions: the one in force, those of pods, and some old ones."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import structlog

from slurmoperator.nodesets import names
from slurmoperator.objects.labels import WORKER_APP
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.own.profiles import PROFILE_ANNOTATION
from slurmoperator.objects.parts import AddedMetadata
from slurmoperator.rendering.body import BodyOwner, digest, made
from slurmoperator.workers import revisions
from slurmoperator.workers.revisions import Revision, RevisionPlan
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, lists, paths, resource
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.kube.resource import ResourceKind
from slurmruntime.values.errors import PeerError

_log = structlog.get_logger(__name__)

_API: Final = "apps/v1"
_PLURAL: Final = "controllerrevisions"
_LOOK_AGAIN_S: Final = 60.0
"""How often they are read while nothing about them is to be done."""
_MOST_COLLISIONS: Final = 5
_KEY_STEP: Final = "slurmKeyStep"
_OF_WORKERS: Final = {"labelSelector": names.WORKER_SELECTOR}


class _RevisionObject(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    revision: int = 0
    data: msgspec.Raw = msgspec.Raw(b"null")


_decoder = msgspec.json.Decoder(_RevisionObject)


def read(body: resource.Json) -> _RevisionObject:
    """Decode a ControllerRevision.

    Raises:
        Malformed: it is none.
    """
    return resource.decoded(_decoder, "ControllerRevision", body)


_REVISIONS: Final = ResourceKind(
    path=paths.collection(_API, _PLURAL),
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRevisions:
    """What became of them."""

    hash: str
    """Of the template in force."""
    collisions: int
    failure: PeerError | None = None
    """Why the template in force is not kept yet: nothing is replaced then."""


def content(node_set: NodeSetObject, key_step: int = 0) -> bytes:
    """Return all that makes a NodeSet's workers what they are, canonical.

    Args:
        node_set: with its template.
        key_step: which step of the daemons' key they have; see `slurmoperator.keys.rings`.
    """
    spec = node_set.spec
    parts = {
        "template": spec.template,
        "slurmd": spec.slurmd,
        "logfile": spec.logfile,
        "extraConf": spec.extra_conf or None,
        "ssh": spec.ssh,
        "ordinalPadding": spec.ordinal_padding or None,
        "oversubscribeNode": spec.oversubscribe_node or None,
    }
    given = {key: each for key, each in parts.items() if each is not None}
    profile = node_set.metadata.annotations.get(PROFILE_ANNOTATION)
    marks = {"metadata": {"annotations": {PROFILE_ANNOTATION: profile}}} if profile else {}
    step = {_KEY_STEP: key_step} if key_step else {}
    return _canonical(msgspec.json.encode({"spec": given, **marks, **step}))


async def newest_key_steps(kube: KubeClient, namespace: str) -> dict[str, int]:
    """Return which step of the daemons' key the workers have that NodeSets make now, by the NodeSets' uids.

    A NodeSet's revision is there before its first worker, and only what is in force makes workers.

    Raises:
        KubeError: they were not read.
    """
    found = await lists.listing(kube, _REVISIONS, namespace=namespace, params=_OF_WORKERS)
    newest: dict[str, _RevisionObject] = {}
    for each in found:
        uid = each.metadata.controller_uid
        if uid not in newest or newest[uid].revision < each.revision:
            newest[uid] = each
    return {uid: _key_step(each.data) for uid, each in newest.items()}


def _key_step(data: msgspec.Raw) -> int:
    found = msgspec.json.decode(data)
    step = found.get(_KEY_STEP, 0) if isinstance(found, dict) else 0
    return step if isinstance(step, int) else 0


class NodeSetRevisions:
    """Keeps the templates of NodeSets, during one term of leadership."""

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._seen: dict[str, tuple[str, KeptRevisions, float]] = {}
        """By the NodeSet's uid: for what, what became of it, and until when that is believed."""

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self._seen.pop(uid, None)

    async def keep(
        self, node_set: NodeSetObject, in_use: Collection[str], key_step: int
    ) -> KeptRevisions:
        """Bring them to what is wanted.

        Args:
            node_set: whose they are.
            in_use: hashes on the pods that are there.
            key_step: see `content`.
        """
        uid, current = node_set.metadata.uid, content(node_set, key_step)
        limit = node_set.spec.revision_history_limit
        asked = digest([current.decode(), sorted(in_use), limit])
        known, kept, until_s = self._seen.get(uid, ("", None, 0.0))
        if kept is not None and known == asked and self._monotonic() < until_s:
            return kept
        self.forget(uid)
        collisions = node_set.status.collision_count
        try:
            found = await self._keep(node_set, current, in_use, collisions)
        except PeerError as error:
            unsure = revisions.hash_of(current, collisions)
            return KeptRevisions(hash=unsure, collisions=collisions, failure=error)
        self._seen[uid] = (asked, found, self._monotonic() + _LOOK_AGAIN_S)
        return found

    async def _keep(
        self, node_set: NodeSetObject, current: bytes, in_use: Collection[str], collisions: int
    ) -> KeptRevisions:
        kept = await self._list(node_set)
        plan = revisions.plan(
            current,
            kept,
            in_use=in_use,
            limit=node_set.spec.revision_history_limit,
            collisions=collisions,
        )
        if plan.is_new:
            plan = await self._create(node_set, current, plan)
        if plan.raised is not None:
            await self._raise(node_set, plan.raised, plan.number)
        for each in plan.dropped:
            await self._drop(node_set, each)
        return KeptRevisions(hash=plan.hash, collisions=plan.collisions)

    async def _list(self, node_set: NodeSetObject) -> list[Revision]:
        meta = node_set.metadata
        params = {"labelSelector": names.selector(meta.name)}
        found = await lists.listing(self._kube, _REVISIONS, namespace=meta.namespace, params=params)
        return [
            _revision(each)
            for each in found
            if each.metadata.controller_uid == meta.uid and each.metadata.deletion_timestamp is None
        ]

    async def _create(
        self, node_set: NodeSetObject, current: bytes, plan: RevisionPlan
    ) -> RevisionPlan:
        """Create it. What has its name is ours if a reply was lost, or takes the hash.

        Raises:
            Conflict: all names that were tried are taken.
            KubeError: it was not created, or nobody knows.
        """
        collection = paths.collection(_API, _PLURAL, node_set.metadata.namespace)
        for collisions in range(plan.collisions, plan.collisions + _MOST_COLLISIONS):
            tried = replace(
                plan, hash=revisions.hash_of(current, collisions), collisions=collisions
            )
            body = _body(node_set, current, tried)
            try:
                await self._kube.request("POST", collection, body=body)
            except errors.Conflict:
                if not await self._is_there(node_set, current, body["metadata"]["name"]):
                    continue
            _log.info("revision.created", revision=body["metadata"]["name"])
            return tried
        raise errors.Conflict("POST", collection, message="others have all names that were tried")

    async def _is_there(self, node_set: NodeSetObject, current: bytes, name: str) -> bool:
        """Check whether the one of that name is this NodeSet's and has this template."""
        there = read(await self._kube.request("GET", _path(node_set, name)))
        is_ours = there.metadata.controller_uid == node_set.metadata.uid
        return is_ours and _canonical(there.data) == current

    async def _raise(self, node_set: NodeSetObject, revision: Revision, number: int) -> None:
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": revision.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": revision.resource_version},
            {"op": "replace", "path": "/revision", "value": number},
        ]
        path = _path(node_set, revision.name)
        await self._kube.request("PATCH", path, body=operations, content_type=JSON_PATCH)
        _log.info("revision.raised", revision=revision.name)

    async def _drop(self, node_set: NodeSetObject, revision: Revision) -> None:
        same = {"uid": revision.uid, "resourceVersion": revision.resource_version}
        with contextlib.suppress(errors.NotFound):
            path = _path(node_set, revision.name)
            await self._kube.request("DELETE", path, body={"preconditions": same})
        _log.info("revision.deleted", revision=revision.name)


def _revision(found: _RevisionObject) -> Revision:
    return Revision(
        name=found.metadata.name,
        hash=found.metadata.labels.get(names.DIGEST_LABEL, ""),
        number=found.revision,
        content=_canonical(found.data),
        uid=found.metadata.uid,
        resource_version=found.metadata.resource_version,
    )


def _canonical(data: bytes | msgspec.Raw) -> bytes:
    """Return the same for the same values: the fields of types have an order of their own."""
    return msgspec.json.encode(msgspec.json.decode(data), order="deterministic")


def _body(node_set: NodeSetObject, current: bytes, plan: RevisionPlan) -> dict[str, Any]:
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    body = made(
        owner,
        "ControllerRevision",
        f"{node_set.metadata.name}-{plan.hash}",
        api_version=_API,
        added=AddedMetadata(labels={names.DIGEST_LABEL: plan.hash}),
        parts={"revision": plan.number, "data": msgspec.json.decode(current)},
    )
    return dict(body.body)


def _path(node_set: NodeSetObject, name: str) -> str:
    return paths.collection(_API, _PLURAL, node_set.metadata.namespace) + paths.of(name)
