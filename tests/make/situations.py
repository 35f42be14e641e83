"""What every test of interrupted work does: live through a situation, with one write or none that goes wrong."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tests import virtual_time
from tests.make.leader import Leader, Outset
from tests.make.trouble import Fault, Trouble
from tests.virtual_time import VirtualClock

SETTLED_AFTER_S = 40.0
"""Longer than a lost submit is waited for, than two looks for orphans, and than any back-off after one failure."""

MOST_REPEATS = 5
"""No life writes the same thing more often, if its writes have any effect."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is when a leader begins; made anew for each life, as a life changes it."""

    name: str
    outset: Callable[[], Outset]


def lived_through(there: Situation, trouble: Trouble) -> Leader:
    """Lead until everything has settled; what the leader's peers have then is how it ended."""

    async def main(clock: VirtualClock) -> Leader:
        leader = Leader(there.outset(), trouble, clock)
        await leader.lead(for_s=SETTLED_AFTER_S)
        return leader

    return virtual_time.run(main)


@dataclass(frozen=True, slots=True)
class Smooth:
    """A life in which nothing goes wrong."""

    writes: tuple[str, ...]
    outcome: str


@cache
def lived_smoothly(there: Situation) -> Smooth:
    """Live it once for all faults: it is the same each time, as time is virtual."""
    trouble = Trouble()
    leader = lived_through(there, trouble)
    assert trouble.writes
    assert max(Counter(trouble.writes).values()) <= MOST_REPEATS, "it does not settle"
    assert not leader.api.conflicts
    assert not len(leader.set_aside)
    return Smooth(tuple(trouble.writes), leader.outcome())


def check_that_every_write_may_fail(there: Situation, fault: Fault) -> None:
    """Let each write of the situation fail in turn: it must end as it does undisturbed."""
    smooth = lived_smoothly(there)
    for at, write in enumerate(smooth.writes, start=1):
        found = lived_through(there, Trouble(fault, at=at))
        assert smooth.outcome == found.outcome(), f"write {at}, {write}: {fault.value}"
        assert not len(found.set_aside), f"write {at}, {write}: {fault.value}"
