"""The lives that pods are given in a soak: what they ask, what is done to them, and how that must end in both worlds."""

import enum
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.integration.worlds import played

HELD = {"slurmjob.slinky.slurm.net/hold": "true"}


class Fate(enum.Enum):
    """What becomes of a pod."""

    ENDS = "ends by itself"
    STAYS = "is left alone and runs until all is over"
    DELETED = "is deleted while it runs"
    DELETED_EARLY = "is deleted while it waits"
    CANCELLED = "loses its placeholder by scancel while it runs"
    RELEASED = "is held, released by an administrator, and ends by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One pod to be."""

    name: str
    fate: Fate
    annotations: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0
    """So long it waits or runs before something is done to it."""
    exit_code: int = 0

    @property
    def is_played_to_its_end(self) -> bool:
        """It ends by itself: nobody may end it before."""
        return self.fate in (Fate.ENDS, Fate.RELEASED)

    @property
    def accounted(self) -> Sequence[tuple[str, str]]:
        """What sacct may say of its end: state and exit code."""
        if self.is_played_to_its_end:
            return [("FAILED", f"{self.exit_code}:0") if self.exit_code else ("COMPLETED", "0:0")]
        return [("CANCELLED", "0:0")]


_FATES = (
    *(Fate.ENDS,) * 14,
    *(Fate.DELETED,) * 2,
    *(Fate.DELETED_EARLY,) * 1,
    *(Fate.CANCELLED,) * 2,
    *(Fate.RELEASED,) * 1,
)


def draw(dice: random.Random, name: str, fates: Sequence[Fate] = _FATES) -> Life:
    """A life at random."""
    fate = dice.choice(fates)
    code = dice.choice((0, 0, 0, 1, 3))
    notes: dict[str, str] = {}
    if fate in (Fate.ENDS, Fate.RELEASED):
        notes |= played(seconds=dice.randint(1, 3), exit_code=code)
    if fate in (Fate.RELEASED, Fate.DELETED_EARLY):
        notes |= HELD
    return Life(
        name=name,
        fate=fate,
        annotations=notes,
        after_s=dice.uniform(0, 3),
        exit_code=code if fate in (Fate.ENDS, Fate.RELEASED) else 0,
    )
