"""Apply all objects that one object owns, and delete those that are no longer wanted.

Each step reads first and writes what differs, so it may be interrupted anywhere and repeated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from slurmruntime.kube import errors
from slurmruntime.kube.apply import ownership, writes
from slurmruntime.kube.apply.ownership import Ownership
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.objects import JsonObject

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOwner:
    """The owner of the objects, and how they are written."""

    uid: str
    """The uid of their controlling owner."""
    manager: str
    takes_over: bool
    """See `ownership.judge`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyVerdict:
    """The state of the object that a body describes."""

    body: JsonObject
    uid: str
    """The uid of the object with this name; "" if there is none."""
    ownership: Ownership
    reason: str
    """For people; "" if there is none."""


async def judge(
    client: KubeClient, bodies: Iterable[JsonObject], of: ObjectOwner
) -> tuple[BodyVerdict, ...]:
    """Judge each desired object against the current one; raise KubeError if one cannot be read."""
    return tuple([await _judge_one(client, body, of) for body in bodies])


async def _judge_one(client: KubeClient, body: JsonObject, of: ObjectOwner) -> BodyVerdict:
    current = await writes.find(client, body)
    if current is None and not await writes.is_served(client, body):
        text = f"this cluster does not serve {body['kind']} of {body['apiVersion']}"
        return BodyVerdict(body=body, uid="", ownership=Ownership.NOT_SERVED, reason=text)
    verdict = ownership.judge(
        current, body, owner_uid=of.uid, manager=of.manager, takes_over=of.takes_over
    )
    return BodyVerdict(
        body=body,
        uid=current.uid if current is not None else "",
        ownership=verdict.ownership,
        reason=verdict.reason,
    )


async def apply(client: KubeClient, judged: Sequence[BodyVerdict], of: ObjectOwner) -> None:
    """Apply what is not in force, in order; a KubeError, perhaps for a lost reply, leaves the rest untried."""
    for verdict in judged:
        if verdict.ownership in (Ownership.IN_FORCE, Ownership.NOT_SERVED):
            continue
        if verdict.ownership is Ownership.LEAVING:
            raise errors.Conflict("PATCH", writes.path(verdict.body), message=verdict.reason)
        await writes.apply(client, verdict.body, manager=of.manager, uid=verdict.uid)
        _log.info("belonging.applied", applied=_label(verdict.body), reason=verdict.reason)


async def withdraw(client: KubeClient, unwanted: Iterable[JsonObject], of: ObjectOwner) -> None:
    """Delete objects that we created for the owner and that are no longer wanted.

    Objects that others created, took over or own stay, whatever their names.

    Raises:
        KubeError: one of them was not read or not deleted, or may or may not have been: the rest was not tried.
    """
    for body in unwanted:
        current = await writes.find(client, body)
        if current is None or current.deletion_timestamp is not None:
            continue
        if ownership.is_ours(current, owner_uid=of.uid, manager=of.manager):
            await writes.delete(client, body, uid=current.uid, version=current.resource_version)
            _log.info("belonging.deleted", deleted=_label(body))


def _label(body: JsonObject) -> str:
    metadata = body["metadata"]
    return f"{body['kind']} {metadata['namespace']}/{metadata['name']}"
