"""Pods and native jobs that want devices, and what must hold of each."""

import enum
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.soak.devices.hands import Held

MOST_DEVICES = 4
"""Of one of them, and of each node."""
CODE = 3
_SHORTEST_S, _LONGEST_S = 0.5, 6.0
CANCELLED = "CANCELLED"
PREEMPTED = "PREEMPTED"


class Kind(enum.StrEnum):
    """What it is."""

    POD = "pod"
    JOB = "native job"
    URGENT = "native job that preempts"


class Fate(enum.StrEnum):
    """How it is to end, unless it is preempted."""

    ENDS = "ends well"
    EXITS = "exits with an error"
    IS_CANCELLED = "is cancelled"


_MEANT = {
    Fate.ENDS: "COMPLETED 0:0",
    Fate.EXITS: f"FAILED {CODE}:0",
    Fate.IS_CANCELLED: CANCELLED,
}


@dataclass(slots=True)
class DeviceLife:
    """One pod or native job."""

    name: str
    kind: Kind
    fate: Fate
    devices: int
    seconds: float
    job_id: str = ""
    is_created: bool = False
    is_cancelled: bool = False
    end: str = ""
    """Of its job, or of the last one of its pod, as sacct has it: `FAILED 3:0`; Slurm's own ends without a code."""

    @property
    def code(self) -> int:
        """With which its process ends."""
        return CODE if self.fate is Fate.EXITS else 0

    @property
    def takes_s(self) -> float:
        """How long it holds its devices; one that is to be cancelled waits for that."""
        return 600.0 if self.fate is Fate.IS_CANCELLED else self.seconds


def draw(seed: int, count: int) -> list[DeviceLife]:
    """Draw them; the same seed gives the same ones."""
    dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
    kinds = (Kind.POD,) * 5 + (Kind.JOB,) * 4 + (Kind.URGENT,)
    fates = (Fate.ENDS,) * 6 + (Fate.EXITS,) + (Fate.IS_CANCELLED,) * 3
    return [
        DeviceLife(
            name=f"d{seed}-{number}",
            kind=dice.choice(kinds),
            fate=dice.choice(fates),
            devices=dice.randint(1, MOST_DEVICES),
            seconds=round(dice.uniform(_SHORTEST_S, _LONGEST_S), 1),
        )
        for number in range(count)
    ]


def breaches(
    lives: Sequence[DeviceLife],
    held: Mapping[str, Sequence[Held]],
    twice: Mapping[str, Sequence[str]],
    cpus: str,
) -> Iterator[str]:
    """Yield what does not hold once all is over.

    Args:
        lives: all of them.
        held: what each found itself to have, by node.
        twice: devices in two hands, by node.
        cpus: the processors of every node.
    """
    for node, lines in twice.items():
        yield from (f"{node}: {line}: in two hands" for line in lines)
    by_name = {life.name: life for life in lives}
    begun = Counter(each.name for there in held.values() for each in there)
    for node, there in held.items():
        for each in there:
            life = by_name.get(each.name)
            if life is None:
                yield f"{node}: {each.name} is none of ours"
            elif len(set(each.devices)) != life.devices:
                yield f"{node}: {each.name} has {each.devices}, wanted {life.devices}"
            if each.cpus != cpus:
                # A cpuset of its own: that needs a check like the one of devices.
                yield f"{node}: {each.name} has processors {each.cpus} only"
    for life in lives:
        if begun[life.name] > 1:
            yield f"{life.name} began {begun[life.name]} times"
        if fault := _unfair(life, has_begun=begun[life.name] > 0):
            yield f"{life.name} ({life.kind}, {life.fate}): {fault}"


def _unfair(life: DeviceLife, *, has_begun: bool) -> str:
    if not life.end:
        return "lost: it never ended"
    is_played = life.end == _MEANT[life.fate]
    if is_played and not has_begun and life.fate is not Fate.IS_CANCELLED:
        return f"{life.end}, and it never held a device"
    return "" if is_played or _is_excused(life) else f"ended as {life.end}"


def _is_excused(life: DeviceLife) -> bool:
    """Check whether it was preempted, which an urgent one never is."""
    return life.kind is not Kind.URGENT and life.end == PREEMPTED


def preempted(log: str) -> frozenset[str]:
    """Return the jobs that slurmctld says to have preempted.

    To its accounts, one that was preempted while CONFIGURING was cancelled by root.
    """
    return frozenset(re.findall(r"preempted JobId=(\d+) has been killed", log))


def end_of(state: str, code: str, *, is_preempted: bool = False) -> str:
    """Return how a job ended, in one word if that was Slurm's doing: a signal may reach its code or not."""
    word = state.split(maxsplit=1)[0]
    if word == CANCELLED and is_preempted:
        return PREEMPTED
    return word if word in (CANCELLED, PREEMPTED) else f"{word} {code}"
