"""GRES as Slurm writes them: `gpu:a100:4(S:0-1),nic:1`."""

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

USUAL: Mapping[str, str] = MappingProxyType({"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"})
"""Extended resources and their GRES, unless the setting `gpu_resources` of the controllers says otherwise."""


def plain(text: str) -> str:
    """Return GRES in our order, without the sockets that Slurm adds: `gpu:a100:4(S:0-1)`."""
    return ",".join(sorted(filter(None, re.sub(r"\([^)]*\)", "", text).split(","))))


def counted(text: str) -> dict[str, int]:
    """Return the count of each GRES: `gpu:a100:4` has 4 of `gpu:a100`, `gpu` has one."""
    counts = {}
    for each in filter(None, plain(text).split(",")):
        name, _, count = each.rpartition(":")
        if count.isdecimal():
            counts[name] = int(count)
        else:
            counts[each] = 1
    return counts


def by_kind(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the types of each kind, and leave out what there is none of.

    `{"gpu:a100": 4, "gpu:1g.10gb": 2}` becomes `{"gpu": 6}`.
    """
    kinds: Counter[str] = Counter()
    for name, count in counts.items():
        kinds[name.partition(":")[0]] += count
    return {kind: count for kind, count in kinds.items() if count > 0}
