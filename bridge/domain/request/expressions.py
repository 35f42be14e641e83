"""Feature expressions, as Slurm reads them: joined and multiplied out, without a pod or a node.

Slurm evaluates an expression from left to right, `&` and `|` with equal precedence, with one level
of parentheses (measured with 26.05). So only `a&(b|c)&(d|e)` and `(a&b)|(a&c)` are written, which
mean the same under every precedence.
"""

import re
from collections.abc import Sequence

from bridge.domain.request import notation

MAX_PRODUCTS = 32
"""More alternatives than this do not fit into an expression anyway."""

Product = tuple[str, ...]
"""Features of which a node needs all."""


def products(text: str) -> list[Product] | None:
    """Multiply an expression out as Slurm evaluates it for a job of one node; None if that is long.

    A matching OR in brackets is an ordinary one there.
    """
    found: list[Product] = [()]
    operator = "&"
    outer: list[tuple[list[Product], str]] = []
    for token in re.findall(r"[&|()\[\]]|[^&|()\[\]]+", text):
        if token in ("&", "|"):
            operator = token
            continue
        if token in ("(", "["):
            outer.append((found, operator))
            found, operator = [()], "&"
            continue
        new: list[Product] = [(token,)]
        if token in (")", "]"):
            new = found
            found, operator = outer.pop()
        found = [a + b for a in found for b in new] if operator == "&" else found + new
        if len(found) > MAX_PRODUCTS:
            return None
    return found


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


def is_short(text: str) -> bool:
    """Check whether Slurm takes an expression of this length."""
    return len(text.encode()) <= notation.MAX_TEXT_BYTES


def _outside_brackets(text: str) -> str:
    return re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)
