"""An API server takes an integer's bound only if a JSON number holds it exactly."""

from collections.abc import Iterator
from typing import Any

from jobs.objects.definition import definition

_EXACT = 2**53 - 1


def bounds(schema: Any) -> Iterator[int]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("minimum", "maximum") and isinstance(value, int):
                yield value
            else:
                yield from bounds(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from bounds(each)


def test_every_bound_of_the_definition_is_exact() -> None:
    found = list(bounds(definition()))

    assert found
    assert all(-_EXACT <= each <= _EXACT for each in found)
