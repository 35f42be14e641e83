"""All that belongs to one object: brought to what is wanted, and taken away when it is wanted no more.

Each step reads first and writes what differs, so it may be cut off anywhere and done again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from slurmruntime.kube import errors
from slurmruntime.kube.apply import standing, writes
from slurmruntime.kube.apply.standing import Standing
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.errors import PeerError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Possessor:
    """Whose the objects are, and who writes them."""

    uid: str
    """Of the object that they belong to, which is their controlling owner."""
    manager: str
    """Our field manager."""
    takes_over: bool
    """See `standing.judge`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBody:
    """How the object of one body stands."""

    body: Mapping[str, Any]
    uid: str
    """Of the object that has its name; "" if there is none."""
    standing: Standing
    reason: str
    """For people; "" if there is nothing to say."""


async def judge(
    client: KubeClient, bodies: Iterable[Mapping[str, Any]], of: Possessor
) -> tuple[JudgedBody, ...]:
    """Say how each object stands that is wanted.

    Raises:
        KubeError: one of them was not read.
    """
    return tuple([await _judge_one(client, body, of) for body in bodies])


async def _judge_one(client: KubeClient, body: Mapping[str, Any], of: Possessor) -> JudgedBody:
    there = await writes.find(client, body)
    if there is None and not await writes.is_served(client, body):
        text = f"this cluster does not serve {body['kind']} of {body['apiVersion']}"
        return JudgedBody(body=body, uid="", standing=Standing.NOT_SERVED, reason=text)
    verdict = standing.judge(
        there, body, owner_uid=of.uid, manager=of.manager, takes_over=of.takes_over
    )
    return JudgedBody(
        body=body,
        uid=there.uid if there is not None else "",
        standing=verdict.standing,
        reason=verdict.reason,
    )


async def apply(
    client: KubeClient, judged: Sequence[JudgedBody], of: Possessor
) -> PeerError | None:
    """Apply what is not in force, in order; return what failed first, after which nothing was tried."""
    for each in judged:
        if each.standing in (Standing.IN_FORCE, Standing.NOT_SERVED):
            continue
        if each.standing is Standing.LEAVING:
            return errors.Conflict("PATCH", writes.path(each.body), message=each.reason)
        try:
            await writes.apply(client, each.body, manager=of.manager, uid=each.uid)
        except PeerError as error:
            return error
        _log.info("belonging.applied", applied=_called(each.body), reason=each.reason)
    return None


async def withdraw(
    client: KubeClient, unwanted: Iterable[Mapping[str, Any]], of: Possessor
) -> PeerError | None:
    """Delete what we made for it once and what is wanted no more; return what failed first.

    What others made, took over or own stays, whatever its name.

    Args:
        client: the API server.
        unwanted: apiVersion, kind, name and namespace of what we may have made.
        of: for whom.
    """
    for each in unwanted:
        try:
            found = await writes.find(client, each)
            if found is None or found.deletion_timestamp is not None:
                continue
            if not standing.is_ours(found, owner_uid=of.uid, manager=of.manager):
                continue
            await writes.delete(client, each, uid=found.uid, version=found.resource_version)
        except PeerError as error:
            return error
        _log.info("belonging.deleted", deleted=_called(each))
    return None


def _called(body: Mapping[str, Any]) -> str:
    metadata = body["metadata"]
    return f"{body['kind']} {metadata['namespace']}/{metadata['name']}"
