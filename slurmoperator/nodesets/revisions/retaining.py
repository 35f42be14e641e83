"""The templates that a NodeSet has had: which one is in force, and which are retained."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

_HASH_LENGTH: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A retained template."""

    name: str
    hash: str
    """As the pods made from it carry it."""
    number: int
    """The highest is in force."""
    content: bytes
    """Canonical: equal templates have equal bytes."""
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionPlan:
    """Changes that retain the template in force, and no more old ones than the limit."""

    hash: str
    number: int
    collisions: int
    """How often another template already had the hash."""
    is_new: bool = False
    raised: Revision | None = None
    """An existing revision that comes into force again: it gets `number`."""
    dropped: tuple[Revision, ...] = ()


def hash_of(content: bytes, collisions: int) -> str:
    """Return a short hash of a canonical template; another count of collisions gives another hash."""
    salt = str(collisions).encode() if collisions else b""
    return hashlib.sha256(content + salt).hexdigest()[:_HASH_LENGTH]


def plan(
    content: bytes,
    existing: Sequence[Revision],
    *,
    in_use: Collection[str],
    limit: int,
    collisions: int,
) -> RevisionPlan:
    """Return the changes to make for a canonical template. Revisions whose hash is in use by pods stay, and `limit` others."""
    newest = max((revision.number for revision in existing), default=0)
    same = max(
        (revision for revision in existing if revision.content == content),
        key=lambda revision: revision.number,
        default=None,
    )
    if same is not None:
        is_in_force = same.number == newest
        return RevisionPlan(
            hash=same.hash,
            number=newest if is_in_force else newest + 1,
            collisions=collisions,
            raised=None if is_in_force else same,
            dropped=_dropped(existing, {same.hash, *in_use}, limit),
        )
    taken = {revision.hash for revision in existing}
    while (new_hash := hash_of(content, collisions)) in taken:
        collisions += 1
    return RevisionPlan(
        hash=new_hash,
        number=newest + 1,
        collisions=collisions,
        is_new=True,
        dropped=_dropped(existing, in_use, limit),
    )


def _dropped(
    existing: Sequence[Revision], in_use: Collection[str], limit: int
) -> tuple[Revision, ...]:
    unused = (revision for revision in existing if revision.hash not in in_use)
    old = sorted(unused, key=lambda revision: revision.number)
    return tuple(old[: max(len(old) - limit, 0)])
