"""The consumers of readings of Slurm, and what they need from each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bridge.domain.observation.pace import Pace
from bridge.slurm.snapshot import Snapshot
from slurmruntime.values.ids import JobId


@dataclass(frozen=True, slots=True)
class Wants:
    """What one reading has to contain."""

    due: tuple[JobId, ...] = ()
    """Jobs to read although their state is unchanged."""
    surely: bool = False
    """Decisions will be based on it: ask Slurm even if the last list is probably still right."""
    complete: bool = False
    """Decisions will be based on what is absent from it: it must be complete."""


def combine(wants: Iterable[Wants]) -> Wants:
    """Combine several wants into one reading for all."""
    every = tuple(wants)
    return Wants(
        due=tuple(dict.fromkeys(id_ for one in every for id_ in one.due)),
        surely=any(one.surely for one in every),
        complete=any(one.complete for one in every),
    )


class Audience(Protocol):
    """Consumes readings."""

    def wants(self) -> Wants:
        """Return what the reading that begins now has to contain; called once per reading."""

    def read(self, snapshot: Snapshot) -> None:
        """Take in a successful reading."""

    def failed(self) -> None:
        """Note that a reading has failed."""


class Reader(Audience, Protocol):
    """Consumes readings, and decides when they are needed."""

    @property
    def pace(self) -> Pace:
        """How often it needs readings."""

    @property
    def is_asked(self) -> bool:
        """True if it wants the next reading as soon as its pace allows."""

    def due_at(self, since: float) -> float:
        """Return when its next unrequested reading is due; since: when the last one ended."""
