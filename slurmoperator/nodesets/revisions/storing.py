"""Templates of NodeSets as ControllerRevisions: the one in force, those of pods, and some older."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

import msgspec
import structlog

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan.look import Outcome, PreparationResult
from slurmoperator.nodesets.revisions import retaining
from slurmoperator.nodesets.revisions.retaining import Revision, RevisionPlan
from slurmoperator.objects.labels import WORKER_APP
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.own.profiles import PROFILE_ANNOTATION
from slurmoperator.objects.parts import ExtraMetadata
from slurmoperator.recent import RECHECK, RecentResults
from slurmoperator.rendering.body import BodyOwner, digest, owned_body
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, lists, paths, resource
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.values.errors import PEER_ERRORS

_log = structlog.get_logger(__name__)

_API: Final = "apps/v1"
_PLURAL: Final = "controllerrevisions"
_MOST_COLLISIONS: Final = 5
_KEY_STEP: Final = "slurmKeyStep"
_OF_WORKERS: Final = {"labelSelector": names.WORKER_SELECTOR}


class _RevisionObject(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    revision: int = 0
    data: msgspec.Raw = msgspec.Raw(b"null")


_REVISIONS: Final = resource.own_kind(
    paths.collection(_API, _PLURAL), "ControllerRevision", _RevisionObject
)


def content(node_set: NodeSetObject, key_step: int = 0) -> bytes:
    """Return everything that determines a NodeSet's workers, a version of the daemons' key included, in canonical form."""
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
    fields = {key: value for key, value in parts.items() if value is not None}
    profile = node_set.metadata.annotations.get(PROFILE_ANNOTATION)
    marks = {"metadata": {"annotations": {PROFILE_ANNOTATION: profile}}} if profile else {}
    step = {_KEY_STEP: key_step} if key_step else {}
    return _canonical(msgspec.json.encode({"spec": fields, **marks, **step}))


async def newest_key_steps(kube: KubeClient, namespace: str) -> dict[str, int]:
    """Return the version of the daemons' key that new workers get, by the uids of their NodeSets.

    A NodeSet's revision exists before its first worker, and workers are made only from the one in force.

    Raises:
        KubeError: the revisions could not be read.
    """
    listed = await lists.listing(kube, _REVISIONS, namespace=namespace, params=_OF_WORKERS)
    newest: dict[str, _RevisionObject] = {}
    for revision in listed:
        uid = revision.metadata.controller_uid
        if uid not in newest or newest[uid].revision < revision.revision:
            newest[uid] = revision
    steps = {}
    for uid, revision in newest.items():
        template = msgspec.json.decode(revision.data)
        step = template.get(_KEY_STEP, 0) if isinstance(template, dict) else 0
        steps[uid] = step if isinstance(step, int) else 0
    return steps


class NodeSetRevisions:
    """Maintains the revisions of NodeSets, during one term of leadership."""

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._current = RecentResults[str, PreparationResult](monotonic)
        """By the NodeSet's uid, for the digest of a request."""

    async def keep(
        self, node_set: NodeSetObject, in_use: Collection[str], key_step: int
    ) -> PreparationResult:
        """Store the template in force, and delete surplus old ones; `in_use` are the hashes on its pods."""
        uid, current = node_set.metadata.uid, content(node_set, key_step)
        limit = node_set.spec.revision_history_limit
        request = digest([current.decode(), sorted(in_use), limit])
        if result := self._current.of(uid, request):
            return result
        collisions = node_set.status.collision_count
        try:
            plan = await self._keep(node_set, current, in_use, collisions)
        except PEER_ERRORS as error:
            return PreparationResult(
                revision=retaining.hash_of(current, collisions),
                collisions=collisions,
                is_stored=False,
                key_step=key_step,
                outcome=Outcome(failures=(error,)),
            )
        result = PreparationResult(
            revision=plan.hash, collisions=plan.collisions, key_step=key_step
        )
        self._current.put(uid, request, result, lasts=RECHECK)
        return result

    async def _keep(
        self, node_set: NodeSetObject, current: bytes, in_use: Collection[str], collisions: int
    ) -> RevisionPlan:
        existing = await self._list(node_set)
        plan = retaining.plan(
            current,
            existing,
            in_use=in_use,
            limit=node_set.spec.revision_history_limit,
            collisions=collisions,
        )
        if plan.is_new:
            plan = await self._create(node_set, current, plan)
        if plan.raised is not None:
            await self._raise(node_set, plan.raised, plan.number)
        for revision in plan.dropped:
            await self._drop(node_set, revision)
        return plan

    async def _list(self, node_set: NodeSetObject) -> list[Revision]:
        meta = node_set.metadata
        params = {"labelSelector": names.selector(meta.name)}
        listed = await lists.listing(
            self._kube, _REVISIONS, namespace=meta.namespace, params=params
        )
        return [
            _revision(revision)
            for revision in listed
            if revision.metadata.controller_uid == meta.uid
            and revision.metadata.deletion_timestamp is None
        ]

    async def _create(
        self, node_set: NodeSetObject, current: bytes, plan: RevisionPlan
    ) -> RevisionPlan:
        """Create it. If its name is taken, a reply was lost, or the next hash is tried."""
        collection = paths.collection(_API, _PLURAL, node_set.metadata.namespace)
        for collisions in range(plan.collisions, plan.collisions + _MOST_COLLISIONS):
            attempt = replace(
                plan, hash=retaining.hash_of(current, collisions), collisions=collisions
            )
            body = _body(node_set, current, attempt)
            try:
                await self._kube.request("POST", collection, body=body)
            except errors.Conflict:
                where = _path(node_set, body["metadata"]["name"])
                existing = _REVISIONS.read(await self._kube.request("GET", where))
                is_ours = existing.metadata.controller_uid == node_set.metadata.uid
                if not is_ours or _canonical(existing.data) != current:
                    continue
            _log.info("revision.created", revision=body["metadata"]["name"])
            return attempt
        message = "other objects have all names that were tried for the ControllerRevision"
        raise errors.Conflict("POST", collection, message=message)

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


def _revision(stored: _RevisionObject) -> Revision:
    return Revision(
        name=stored.metadata.name,
        hash=stored.metadata.labels.get(names.DIGEST_LABEL, ""),
        number=stored.revision,
        content=_canonical(stored.data),
        uid=stored.metadata.uid,
        resource_version=stored.metadata.resource_version,
    )


def _canonical(data: bytes | msgspec.Raw) -> bytes:
    """Return equal bytes for equal values: types encode their fields in an order of their own."""
    return msgspec.json.encode(msgspec.json.decode(data), order="deterministic")


def _body(node_set: NodeSetObject, current: bytes, plan: RevisionPlan) -> dict[str, Any]:
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    return owned_body(
        owner,
        "ControllerRevision",
        f"{node_set.metadata.name}-{plan.hash}",
        api_version=_API,
        added=ExtraMetadata(labels={names.DIGEST_LABEL: plan.hash}),
        parts={"revision": plan.number, "data": msgspec.json.decode(current)},
    )


def _path(node_set: NodeSetObject, name: str) -> str:
    return paths.collection(_API, _PLURAL, node_set.metadata.namespace) + paths.of(name)
