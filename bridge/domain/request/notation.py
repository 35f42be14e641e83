"""Parse annotation values: each function reads one form into Slurm's units, or raises ValueError.

The errors carry no text: the caller knows the field and reports its accepted form
(`bridge.domain.request.overrides`).

Feature expressions are joined and multiplied out here too. Slurm evaluates them from left to right,
`&` and `|` with equal precedence, with one level of parentheses (measured with 26.05). So only
`a&(b|c)&(d|e)` and `(a&b)|(a&c)` are written, which mean the same under every precedence.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from slurmruntime.values import quantities

MAX_TEXT_BYTES = 1024
"""Slurm refuses longer names, comments and expressions (422, errno 2012)."""

MAX_PRODUCTS = 32
"""More alternatives than this do not fit into an expression anyway."""

MAX_NUMBER = 2**31 - 1

_GRES = re.compile(r"(?:gres/)?([A-Za-z][A-Za-z0-9_-]*(?::[A-Za-z][\w.-]*)?(?::[1-9][0-9]{0,6})?)")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,6})(?::([0-9]{1,6}))?(?::([0-9]{1,6}))?")
_CLOCK = re.compile(r"(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,6})")
_JOBS = r":[1-9][0-9]{0,9}(?:\+[0-9]{1,9})?"
_DEPENDENCY = re.compile(rf"singleton|after(?:any|ok|notok)?(?:{_JOBS})+")
_SWITCHES = re.compile(r"[1-9][0-9]{0,5}(?:@(\S+))?")

Product = tuple[str, ...]
"""Features of which a node needs all."""


def text(value: str) -> str:
    """Read a line of text: printable, not empty, at most `MAX_TEXT_BYTES`."""
    _require(value.strip() and value.isprintable() and len(value.encode()) <= MAX_TEXT_BYTES)
    return value.strip()


def name(value: str) -> str:
    """Read the name of something in Slurm: no spaces, quotes, commas or operators."""
    _require(not re.search(r"[\s,;|&\"']", value))
    return text(value)


def name_list(value: str) -> str:
    """Read names separated by commas."""
    return text(",".join(name(part) for part in value.split(",")))


def expression(value: str) -> str:
    """Read a feature or licence expression.

    Slurm checks its grammar; only what can never be part of one is refused here.
    """
    _require(not re.search(r"[\s\"'`$\\<>]", value))
    return text(value)


def number(value: str, *, least: int = 1) -> int:
    """Read a whole number."""
    _require(re.fullmatch(r"[0-9]{1,10}", value) and least <= int(value) <= MAX_NUMBER)
    return int(value)


def integer(value: str) -> int:
    """Read a whole number, including 0 and negative ones."""
    return -number(value[1:], least=0) if value.startswith("-") else number(value, least=0)


def milli_cpu(value: str) -> int:
    """Read a quantity, rounded up to thousandths of a CPU."""
    count = quantities.milli(quantities.parse(value))
    _require(0 < count <= MAX_NUMBER * quantities.MILLI)
    return count


def memory_mib(value: str) -> int:
    """Read bytes, rounded up to MiB; less than one MiB is refused: its unit was forgotten."""
    amount = quantities.round_up(quantities.parse(value))
    _require(amount >= quantities.MIB)
    return quantities.mebibytes(amount)


def truth(value: str) -> bool:
    """Read `true` or `false`."""
    _require(value.lower() in ("true", "false"))
    return value.lower() == "true"


def moment(value: str) -> datetime:
    """Read an RFC 3339 time with its zone: Slurm's host and the user may have different ones."""
    parsed = datetime.fromisoformat(value)
    _require(parsed.tzinfo)
    return parsed


def minutes(value: str) -> int:
    """Read Slurm's `--time`, rounded up to minutes.

    Accepted are minutes, `[hours:]minutes:seconds` and `days-hours[:minutes[:seconds]]`.
    """
    if match := _DAYS.fullmatch(value):
        days, hours, whole_minutes, seconds = (int(part or 0) for part in match.groups())
    elif match := _CLOCK.fullmatch(value):
        days = 0
        hours, whole_minutes, seconds = (int(part or 0) for part in match.groups())
    else:
        return number(value)
    total = (days * 24 + hours) * 60 + whole_minutes - (-seconds // 60)
    _require(0 < total <= MAX_NUMBER)
    return total


def gres(value: str) -> str:
    """Read `gpu:a100:2,shard:1`, each with or without `gres/` before it, into `gres/gpu:a100:2,gres/shard:1`.

    A kind and type may appear once, and a kind either with types or without.
    """
    parts = [_GRES.fullmatch(part) for part in value.split(",")]
    _require(all(parts))
    named = [part[1] for part in parts if part]
    _require(_is_unambiguous(named))
    return text(",".join(f"gres/{name}" for name in named))


def _is_unambiguous(named: Sequence[str]) -> bool:
    """Check that Slurm's count of every kind is the sum of what is written.

    Slurm keeps the last of two equal names (`gpu:3,gpu:1` is one GPU) and counts a typed one within an untyped one.
    """
    types: dict[str, list[str]] = {}
    for name in named:
        kind, *rest = name.split(":")
        types.setdefault(kind, []).append("" if not rest or rest[0].isdecimal() else rest[0])
    return all(
        len(set(kind_types)) == len(kind_types) and (len(kind_types) == 1 or "" not in kind_types)
        for kind_types in types.values()
    )


def dependency(value: str) -> str:
    """Read `afterok:7:8,singleton`; commas (all must hold) or question marks (any), not both."""
    parts = value.split("?" if "?" in value else ",")
    _require(all(_DEPENDENCY.fullmatch(part) for part in parts))
    return text(value)


def switches(value: str) -> str:
    """Read `count[@longest wait]`, as in sbatch's `--switches`."""
    match = _SWITCHES.fullmatch(value)
    _require(match)
    if match and match[1]:
        minutes(match[1])
    return value


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


def products(text: str) -> list[Product] | None:
    """Multiply an expression out as Slurm evaluates it for a job of one node.

    A matching OR in brackets is an ordinary one there. None if it is long, or a bracket is missing.
    """
    terms: list[Product] = [()]
    operator = "&"
    outer: list[tuple[list[Product], str]] = []
    for token in re.findall(r"[&|()\[\]]|[^&|()\[\]]+", text):
        if token in ("&", "|"):
            operator = token
            continue
        if token in ("(", "["):
            outer.append((terms, operator))
            terms, operator = [()], "&"
            continue
        new: list[Product] = [(token,)]
        if token in (")", "]"):
            if not outer:
                return None
            new = terms
            terms, operator = outer.pop()
        terms = [a + b for a in terms for b in new] if operator == "&" else terms + new
        if len(terms) > MAX_PRODUCTS:
            return None
    return None if outer else terms


def conjunction(ours: str, users: str) -> str | None:
    """Join two expressions so that both hold; None if Slurm's grammar cannot express that."""
    if not users:
        return ours
    if "|" in _outside_brackets(ours) or "*" in users:
        return None
    if "|" not in _outside_brackets(users):
        return f"{ours}&{users}"
    return None if re.search(r"[()\[\]]", users) else f"{ours}&({users})"


def any_of(features: Sequence[str]) -> str:
    """Write that a node needs one of these features."""
    return features[0] if len(features) == 1 else f"({'|'.join(features)})"


def _outside_brackets(text: str) -> str:
    return re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)
