"""GRES as Slurm writes them: `gpu:a100:4(S:0-1),nic:1`."""

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

USUAL: Mapping[str, str] = MappingProxyType({"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"})
"""Extended resources and their GRES, unless the setting `gpu_resources` of the controllers says otherwise."""

LONGEST: Final = 4096
"""Characters of one node's GRES, or of one request's: some hundreds in fact. Nothing longer is read."""
_SOCKETS: Final = re.compile(r"\([^)]*+\)?")
"""To the end if nothing closes it: each character is read once."""
_NUMBER: Final = re.compile(r"([0-9]{1,18})([KMGTP]?)", re.IGNORECASE)
_MOST: Final = 2**63 - 1
"""Slurm counts in 64 bits."""
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def plain(text: str) -> str:
    """Return GRES in our order, without the sockets that Slurm adds: `gpu:a100:4(S:0-1)`; none if the text is too long."""
    if len(text) > LONGEST:
        return ""
    return ",".join(sorted(filter(None, _SOCKETS.sub("", text).split(","))))


def counted(text: str) -> dict[str, int]:
    """Return the count of each GRES: `gpu:a100:4` has 4 of `gpu:a100`, `gpu` has one."""
    counts = {}
    for entry in filter(None, plain(text).split(",")):
        name, _, last = entry.rpartition(":")
        count = number(last)
        counts[entry if count is None else name] = 1 if count is None else count
    counts.pop("", None)
    return counts


def number(text: str) -> int | None:
    """Read a count, `4` or `4K` (times 1024); None if it is not a count, such as the name of a type."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return min(int(match[1]) << (10 * _POWERS[match[2].upper()]), _MOST)


def by_kind(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the types of each kind, and leave out kinds without any.

    `{"gpu:a100": 4, "gpu:1g.10gb": 2}` becomes `{"gpu": 6}`.
    """
    kinds: Counter[str] = Counter()
    for name, count in counts.items():
        kinds[name.partition(":")[0]] += count
    return {kind: count for kind, count in kinds.items() if count > 0}
