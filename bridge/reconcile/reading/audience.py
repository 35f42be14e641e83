"""Who lives from readings of Slurm, and what for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bridge.domain.observation.pace import Pace
from bridge.slurm.snapshot import Snapshot
from slurmruntime.values.ids import JobId


@dataclass(frozen=True, slots=True)
class Wants:
    """What a reading is wanted for."""

    due: tuple[JobId, ...] = ()
    """Jobs to read although their state is unchanged."""
    surely: bool = False
    """Conclusions will be drawn from it."""
    whole: bool = False
    """They will be drawn from what is absent."""


def together(wants: Iterable[Wants]) -> Wants:
    """Return what one reading for all of them is wanted for."""
    found = tuple(wants)
    return Wants(
        due=tuple(dict.fromkeys(id_ for one in found for id_ in one.due)),
        surely=any(one.surely for one in found),
        whole=any(one.whole for one in found),
    )


class Audience(Protocol):
    """Who lives from readings."""

    def wants(self) -> Wants:
        """Return what the reading that begins now is wanted for; called once for each."""

    def read(self, snapshot: Snapshot) -> None:
        """Take in a successful reading."""

    def failed(self) -> None:
        """Take in a failed one."""


class Reader(Audience, Protocol):
    """Who also says when."""

    @property
    def pace(self) -> Pace:
        """How often it needs readings."""

    @property
    def is_asked(self) -> bool:
        """True if it wants the next reading as soon as its pace allows."""

    def due_at(self, since: float) -> float:
        """Return when its next unrequested reading is due; since: when the last one ended."""
