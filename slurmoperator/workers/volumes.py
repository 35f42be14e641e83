"""Which volumes nobody needs any more, if their NodeSet wants those of workers that were scaled in deleted (`whenScaled`).

A claim is deleted in two steps, so that no data goes by a stale view or for a moment's change of mind. It is marked when no
worker of its number is wanted and none is there; and deleted, in the very version that has the mark, when that has held for a
while. Whoever makes a worker takes the mark off first, so only one of the two succeeds.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

PATIENCE: Final = timedelta(minutes=1)
"""How long a number has to be unwanted before its volume goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaim:
    """A claim that was made for a worker with a number."""

    name: str
    number: int
    unneeded_since: datetime | None
    """By its mark; None if it has none, or one that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """What to do about claims, by their names."""

    marked: frozenset[str] = frozenset()
    """Nobody needs them from now on."""
    unmarked: frozenset[str] = frozenset()
    """Somebody needs them again."""
    deleted: frozenset[str] = frozenset()
    """Nobody has needed them for long enough."""
    look_again: timedelta | None = None
    """When there is more to do although nothing happens."""


def plan(claims: Iterable[HeldClaim], *, needed: Collection[int], now: datetime) -> ClaimPlan:
    """Return what to do.

    Args:
        claims: those that were made for this very NodeSet and are not being deleted.
        needed: the numbers of workers that there are to be, and of those that are still there.
        now: by the wall clock; one that was set back makes everything wait longer.
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
        look_again=min(waits, default=None),
    )
