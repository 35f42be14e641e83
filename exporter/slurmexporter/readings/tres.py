"""Trackable resources (TRES) and generic resources (GRES), as Slurm writes them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

MIB: Final = 1 << 20
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_LONGEST: Final = 4096
"""Characters of one job's or one node's; some hundreds in fact."""
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_BINDING: Final = re.compile(r"\([^)]*+\)?")
"""The parentheses after a GRES: sockets, indexes."""
_BYTES: Final = frozenset({"mem", "bb"})
"""TRES whose amounts are memory; without a unit they are MiB."""


@lru_cache(maxsize=4096)
def amounts(text: str) -> Mapping[str, float]:
    """Parse TRES such as `cpu=4,mem=100M,node=1,billing=4,gres/gpu:h200=2` to amounts by name, memory in bytes.

    Invalid parts are left out; of a text that is too long, all.
    """
    by_name: dict[str, float] = {}
    if len(text) > _LONGEST:
        return by_name
    for part in text.split(","):
        name, _, amount = part.partition("=")
        if (match := _AMOUNT.fullmatch(amount.strip())) is None:
            continue
        is_bytes = name.partition("/")[0] in _BYTES
        unit = _UNITS[match[2] or ("M" if is_bytes else "")]
        by_name[name.strip()] = float(match[1]) * unit
    return by_name


def gpus(tres: Mapping[str, float]) -> float:
    """Return the number of GPUs in TRES: the untyped amount, else the sum of the types."""
    untyped = tres.get("gres/gpu")
    if untyped is not None:
        return untyped
    return sum(amount for name, amount in tres.items() if name.startswith("gres/gpu:"))


@lru_cache(maxsize=4096)
def gres(text: str) -> Mapping[tuple[str, str], float]:
    """Parse the GRES of a node, such as `gpu:h200:4(S:0-1),shard:8`, to amounts by name and type; the type may be "".

    Invalid parts are left out; of a text that is too long, all.
    """
    by_kind: dict[tuple[str, str], float] = {}
    if len(text) > _LONGEST:
        return by_kind
    for part in _BINDING.sub("", text).split(","):
        name, *rest = part.strip().split(":")
        rest = [field for field in rest if field != "no_consume"]
        if not name or not rest or (match := _AMOUNT.fullmatch(rest[-1])) is None:
            continue
        key = name, ":".join(rest[:-1])
        by_kind[key] = by_kind.get(key, 0.0) + float(match[1]) * _UNITS[match[2]]
    return by_kind


def gpus_of(text: str) -> float:
    """Return the number of GPUs in the GRES of a node."""
    return sum(amount for (name, _), amount in gres(text).items() if name == "gpu")
