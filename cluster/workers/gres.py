"""The devices (GRES) that a NodeSet promises, and those that a worker's slurmd has registered."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from bridge.domain import numbers

_IN_BRACKETS: Final = re.compile(r"\([^)]*\)")
_COUNT: Final = re.compile(r"([0-9]{1,18})([KMGTP]?)", re.IGNORECASE)
_FACTORS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_NO_CONSUME: Final = "no_consume"


def promised(extra_conf: str) -> dict[str, int]:
    """Return how many devices of each kind a NodeSet's `extraConf` promises: `Gres=gpu:a100:2,shard:8`."""
    found: Counter[str] = Counter()
    for word in extra_conf.split():
        key, _, value = word.partition("=")
        if key.lower() == "gres":
            found.update(counted(value.strip("\"'")))
    return dict(found)


def counted(gres: str) -> dict[str, int]:
    """Count devices by kind, whatever their types: `gpu:a100:2(S:0-1),shard:4K`. What has no number is one."""
    found: Counter[str] = Counter()
    for part in _IN_BRACKETS.sub("", gres).split(","):
        kind, *rest = (each for each in part.split(":") if each.lower() != _NO_CONSUME)
        if kind:
            found[kind] += _number(rest[-1]) if rest else 1
    return dict(found)


def lacking(wanted: dict[str, int], gres: str) -> Iterator[str]:
    """Yield of which kinds a node has fewer than was promised, in words.

    Args:
        wanted: by kind.
        gres: of the node, as Slurm has it.
    """
    there = counted(gres)
    for kind, count in sorted(wanted.items()):
        if there.get(kind, 0) < count:
            yield f"{there.get(kind, 0)} of {count} {kind}"


def _number(text: str) -> int:
    found = _COUNT.fullmatch(text)
    count = numbers.whole(found[1]) if found else None
    return 1 if found is None or count is None else count * 1024 ** _FACTORS[found[2].upper()]
