"""The templates that a NodeSet has had: which one is in force, and which are kept."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

_HASH_LENGTH: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A template that is kept."""

    name: str
    hash: str
    """On the pods that were made from it."""
    number: int
    """The highest is in force."""
    content: bytes
    """Canonical: the same template has the same."""
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionPlan:
    """What to do so that the template in force is kept, and no more old ones than wanted."""

    hash: str
    number: int
    collisions: int
    """How often a hash was taken by another template."""
    is_new: bool = False
    """It has to be created."""
    raised: Revision | None = None
    """One that is there and comes into force again: it gets `number`."""
    dropped: tuple[Revision, ...] = ()
    """Those to be deleted."""


def hash_of(content: bytes, collisions: int) -> str:
    """Return a short hash of a template.

    Args:
        content: the template, canonical.
        collisions: how often a hash of this NodeSet was taken; another number gives another hash.
    """
    salt = str(collisions).encode() if collisions else b""
    return hashlib.sha256(content + salt).hexdigest()[:_HASH_LENGTH]


def plan(
    content: bytes,
    kept: Sequence[Revision],
    *,
    in_use: Collection[str],
    limit: int,
    collisions: int,
) -> RevisionPlan:
    """Return what to do.

    Args:
        content: the template in force, canonical.
        kept: all that are kept now.
        in_use: hashes of templates that pods were made from; these stay.
        limit: how many others stay.
        collisions: how often a hash was taken until now.
    """
    newest = max((each.number for each in kept), default=0)
    same = max(
        (each for each in kept if each.content == content),
        key=lambda each: each.number,
        default=None,
    )
    if same is not None:
        is_in_force = same.number == newest
        return RevisionPlan(
            hash=same.hash,
            number=newest if is_in_force else newest + 1,
            collisions=collisions,
            raised=None if is_in_force else same,
            dropped=_dropped(kept, {same.hash, *in_use}, limit),
        )
    taken = {each.hash for each in kept}
    while (found := hash_of(content, collisions)) in taken:
        collisions += 1
    return RevisionPlan(
        hash=found,
        number=newest + 1,
        collisions=collisions,
        is_new=True,
        dropped=_dropped(kept, in_use, limit),
    )


def _dropped(kept: Sequence[Revision], in_use: Collection[str], limit: int) -> tuple[Revision, ...]:
    """Return the oldest of those that nobody needs."""
    old = sorted((each for each in kept if each.hash not in in_use), key=lambda each: each.number)
    return tuple(old[: max(len(old) - limit, 0)])
