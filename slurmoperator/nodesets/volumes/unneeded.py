"""The volumes of scaled-in workers to delete, if their NodeSet asks for that (`whenScaled`).

A PVC is deleted in two steps, so that neither a stale cache nor a short change of mind costs data. It is marked when the worker of
its ordinal is neither desired nor present, and deleted, in exactly the version that has the mark, when that has held for a while.
Creating a worker removes the mark first, so only one of the two succeeds.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

PATIENCE: Final = timedelta(minutes=1)
"""How long an ordinal has to be unneeded before its volume is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalClaim:
    """A PVC that was made for a numbered worker."""

    name: str
    number: int
    unneeded_since: datetime | None
    """As its mark says; None without a readable mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """The names of the PVCs to change."""

    marked: frozenset[str] = frozenset()
    """PVCs to mark: they are unneeded from now on."""
    unmarked: frozenset[str] = frozenset()
    """PVCs that lose their mark: they are needed again."""
    deleted: frozenset[str] = frozenset()
    """PVCs to delete: they have been unneeded for long enough."""
    requeue_after: timedelta | None = None
    """When more is due without an event."""


def plan(claims: Iterable[OrdinalClaim], *, needed: Collection[int], now: datetime) -> ClaimPlan:
    """Return the changes to make to the PVCs of ordinals, of which these workers are desired or still exist.

    Args:
        now: wall-clock time; setting the clock back only makes everything wait longer.
    """
    marked, unmarked, deleted, waits = set(), set(), set(), []
    for claim in claims:
        since = claim.unneeded_since
        if claim.number in needed:
            if since is not None:
                unmarked.add(claim.name)
        elif since is None:
            marked.add(claim.name)
            waits.append(PATIENCE)
        elif now - since >= PATIENCE:
            deleted.add(claim.name)
        else:
            waits.append(since + PATIENCE - now)
    return ClaimPlan(
        marked=frozenset(marked),
        unmarked=frozenset(unmarked),
        deleted=frozenset(deleted),
        requeue_after=min(waits, default=None),
    )
