"""Sets of processors as the kernel and Slurm write them: `0-3,8`."""

import re
from collections.abc import Iterable

MOST = 8192
"""Processors are numbered below this: the largest NR_CPUS of Linux."""
LONGEST = 4096
"""Characters of a list that are read; `0,2,4,…` of 1500 processors is shorter."""

_PART = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def parse(text: str) -> frozenset[int] | None:
    """Read a list; None if it is not one. An empty text is an empty set."""
    text = text.strip()
    if len(text) > LONGEST:
        return None
    cpus: set[int] = set()
    listed = 0
    for part in text.split(",") if text else ():
        match = _PART.fullmatch(part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        listed += last - first + 1
        if not first <= last < MOST or listed > MOST:
            return None
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def render(cpus: Iterable[int]) -> str:
    """Write a set: `{0, 1, 2, 8}` is `0-2,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
