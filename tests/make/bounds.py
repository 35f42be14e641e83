"""The bounds of numbers in a schema."""

from collections.abc import Iterator
from typing import Any, Final

EXACT: Final = 2**53 - 1
"""An API server takes an integer's bound only if a JSON number holds it exactly."""


def bounds(schema: Any) -> Iterator[int]:
    """Every bound, however deep."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("minimum", "maximum") and isinstance(value, int):
                yield value
            else:
                yield from bounds(value)
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from bounds(each)
