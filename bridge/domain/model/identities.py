"""The identity that a placeholder carries: whose it is, stored in the job's `admin_comment`.

It is versioned JSON. Within a version fields are only added, so readers ignore the ones they do not
know; every version has `cluster`.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from slurmruntime.values.ids import ClusterId, PodUid, SlurmNode, WorkloadKey

M = TypeVar("M")

_MARK = "slurm-bridge"
"""The JSON key that marks it as ours; its value is the version."""

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSubmission:
    """What was decided when the placeholder was first submitted."""

    requester: str
    """The Kubernetes user that created the workload's pods."""
    rule: str
    """The policy rule that allowed them."""
    user: str
    account: str
    asked: Mapping[str, str] = field(default_factory=dict)
    """The request, from the pod and its owners, by field name. A resubmission asks for the same,
    whatever the owners say by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose placeholder it is: kept in `admin_comment`, which only root and SlurmUser can write."""

    cluster: ClusterId
    kind: str
    """The workload's kind: `Pod`, `Job`, `JobSet` …"""
    namespace: str
    name: str
    key: WorkloadKey
    """Its `Membership.key`; called `uid` in the JSON."""
    pods: tuple[PodUid, ...]
    """Its members; a gang's are in rank order. A replacement takes over the entry of a member that
    is gone before it is pinned itself."""
    failed: Mapping[PodUid, str] = field(default_factory=dict)
    """How members failed while others kept running (`outcome.encode`): such a pod may be gone
    before the last one ends."""
    misfits: tuple[SlurmNode, ...] = ()
    """With cause misfit: the nodes that Kubernetes could not use; () means all of the job's."""
    cause: str = ""
    """Why we cancelled it ourselves, written before the cancel; "" otherwise. We then handle its
    end ourselves and submit the workload again."""
    ended: str = ""
    """How its pod ended, as text, if that could not be reported to Slurm and the job is CANCELLED
    instead; "" otherwise."""
    limit_min: int | None = None
    """Its true time limit, in minutes, while we have extended it (`time_limits`) to `extended_min`;
    None otherwise."""
    extended_min: int | None = None
    """The limit that we set, in minutes. If Slurm shows another one, it was changed since, and
    `limit_min` is void."""
    restores: str = ""
    """The SLUID or job id of the placeholder that Slurm lost and that this one replaces
    (`Pod.placed_by`); "" if it replaces none."""
    frozen: FirstSubmission | None = None
    """None if the version that wrote the identity did not know this field."""


def enlist(identity: Identity, *, pods: Sequence[PodUid], alive: Collection[PodUid]) -> Identity:
    """Add members; each takes the entry of one that is gone, which drops how that one failed.

    alive: the pods that keep their entries.
    """
    listed = list(identity.pods)
    dead = [pod for pod in listed if pod not in alive and pod not in pods]
    free = iter(sorted(dead, key=lambda pod: pod not in identity.failed))
    for pod in pods:
        if pod in listed:
            continue
        if (gone := next(free, None)) is None:
            listed.append(pod)
        else:
            listed[listed.index(gone)] = pod
    failed = {pod: how for pod, how in identity.failed.items() if pod in listed}
    return replace(identity, pods=tuple(listed), failed=failed)


def record(identity: Identity, *, pod: PodUid, how: str) -> Identity:
    """Record how a member failed; ignore one that has been replaced meanwhile."""
    if pod not in identity.pods:
        return identity
    return replace(identity, failed={**identity.failed, pod: how})


class UnreadableIdentityError(ValueError):
    """The mark is ours, but a newer version wrote the rest, or it is damaged.

    Such a job is neither foreign nor an orphan: leave it alone and report it.
    """

    workload: WorkloadKey | None = None
    """Whose placeholder it is, if that can be read: no other one may be submitted for it."""

    def __init__(self, why: str, *, cluster: ClusterId | None) -> None:
        super().__init__(why)
        # Kept if it can be read: another cluster's job is not our concern.
        self.cluster = cluster


def encode(identity: Identity) -> str:
    """Write an identity for `admin_comment`.

    It is compact ASCII JSON: about 250 bytes, and 40 more for each further pod.
    """
    document: dict[str, object] = {
        _MARK: _VERSION,
        "cluster": identity.cluster,
        "kind": identity.kind,
        "namespace": identity.namespace,
        "name": identity.name,
        "uid": identity.key,
        "pods": identity.pods,
    }
    if identity.failed:
        document["failed"] = dict(identity.failed)
    if identity.misfits:
        document["misfits"] = identity.misfits
    if identity.cause:
        document["cause"] = identity.cause
    if identity.ended:
        document["ended"] = identity.ended
    if identity.limit_min is not None and identity.extended_min is not None:
        document["limit"] = [identity.limit_min, identity.extended_min]
    if identity.restores:
        document["restores"] = identity.restores
    if frozen := identity.frozen:
        document["frozen"] = {
            "requester": frozen.requester,
            "rule": frozen.rule,
            "user": frozen.user,
            "account": frozen.account,
            "asked": dict(frozen.asked),
        }
    return json.dumps(document, separators=(",", ":"))


def decode(text: str) -> Identity | None:
    """Read an `admin_comment`; None for a foreign job's: not JSON, or JSON without our mark.

    Raises:
        UnreadableIdentityError: it carries our mark, but is of a newer version, or damaged.
    """
    return marked(text, _MARK, _VERSION, _identity)


def marked(
    text: str, mark: str, version: int, read: Callable[[Mapping[str, object], ClusterId], M]
) -> M | None:
    """Read an `admin_comment` that may have a mark; None if it has none.

    Args:
        mark: the JSON key that makes it ours; its value is the version of the document.
        version: the version that can be read.
        read: reads the rest of the document; called only if the comment has that version.

    Raises:
        UnreadableIdentityError: it carries the mark, but is of a newer version, or damaged.
    """
    if f'"{mark}"' not in text:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or mark not in document:
        return None
    try:
        return read(document, _cluster(document, mark, version))
    except UnreadableIdentityError as error:
        uid = document.get("uid")
        error.workload = WorkloadKey(uid) if isinstance(uid, str) else None
        raise


def _cluster(document: Mapping[str, object], mark: str, version: int) -> ClusterId:
    cluster = document.get("cluster")
    if not isinstance(cluster, str):
        raise UnreadableIdentityError("the identity names no cluster", cluster=None)
    if document[mark] != version:
        raise UnreadableIdentityError(
            f"the identity has version {document[mark]!r}, this slurm-bridge reads {version}",
            cluster=ClusterId(cluster),
        )
    return ClusterId(cluster)


def _identity(document: Mapping[str, object], cluster: ClusterId) -> Identity:
    pods = document.get("pods")
    if not isinstance(pods, list):
        raise UnreadableIdentityError("the identity lists no pods", cluster=cluster)
    failed, misfits = document.get("failed", {}), document.get("misfits", [])
    texts = {key: document.get(key) for key in ("kind", "namespace", "name", "uid")}
    texts |= {key: document.get(key, "") for key in ("cause", "ended", "restores")}
    wrong = sorted(key for key, value in texts.items() if not isinstance(value, str))
    if wrong or not all(isinstance(pod, str) for pod in pods):
        raise UnreadableIdentityError(
            f"the identity is damaged: expected text in {', '.join(wrong) or 'pods'}",
            cluster=cluster,
        )
    limit_min, extended_min = _limits(document.get("limit"), cluster)
    return Identity(
        cluster=cluster,
        frozen=_frozen(document.get("frozen"), cluster),
        kind=str(texts["kind"]),
        namespace=str(texts["namespace"]),
        name=str(texts["name"]),
        key=WorkloadKey(str(texts["uid"])),
        pods=tuple(PodUid(pod) for pod in pods),
        failed={PodUid(pod): str(how) for pod, how in failed.items()}
        if isinstance(failed, dict)
        else {},
        misfits=tuple(map(SlurmNode, map(str, misfits))) if isinstance(misfits, list) else (),
        cause=str(texts["cause"]),
        ended=str(texts["ended"]),
        limit_min=limit_min,
        extended_min=extended_min,
        restores=str(texts["restores"]),
    )


def _limits(value: object, cluster: ClusterId) -> tuple[int, int] | tuple[None, None]:
    match value:
        case None:
            return None, None
        case [int(limit_min), int(extended_min)]:
            return limit_min, extended_min
        case _:
            raise UnreadableIdentityError(
                "the identity is damaged: expected two numbers in limit", cluster=cluster
            )


def _frozen(document: object, cluster: ClusterId) -> FirstSubmission | None:
    if document is None:
        return None
    members = document if isinstance(document, dict) else {}
    asked = members.get("asked")
    texts = {key: members.get(key) for key in ("requester", "rule", "user", "account")}
    is_valid = isinstance(asked, dict) and all(isinstance(text, str) for text in asked.values())
    if not (is_valid and all(isinstance(text, str) for text in texts.values())):
        raise UnreadableIdentityError(
            f"the identity is damaged: expected text in frozen.asked and {', '.join(texts)}",
            cluster=cluster,
        )
    return FirstSubmission(
        requester=str(texts["requester"]),
        rule=str(texts["rule"]),
        user=str(texts["user"]),
        account=str(texts["account"]),
        asked=dict(asked or {}),
    )
