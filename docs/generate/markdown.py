"""What several generated pages are made of."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; each row as long as its head."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def docstring(rule: object) -> str:
    """Return a rule's docstring on one line, as a cell shows it."""
    return " ".join((rule.__doc__ or "").split())
