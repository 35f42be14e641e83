"""What the table of operations is made of, and how one becomes a request."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import quote

from slurmclient.errors import TooOld

Value: TypeAlias = str | int | bool | datetime | Iterable[str | int] | None
"""What a parameter of a query may be; a list repeats the parameter, None leaves it out."""

RawCall: TypeAlias = Callable[
    [str, Mapping[str, str | int], Mapping[str, Value], object], Awaitable[dict[str, Any]]
]
"""Performs an operation: its name, the parts of its path, its query, its body."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that slurmrestd can be asked to do."""

    name: str
    method: str
    path: str
    """With {version} and the path's parameters."""
    since: int
    """The oldest data parser that has it: 44 is v0.0.44."""
    mutates: bool
    """Doing it twice may not be the same as doing it once. The method does not tell: `GET /reconfigure` mutates."""
    query: Mapping[str, str]
    """What Slurm calls the query's parameters, by their names here."""
    limits: Mapping[str, tuple[int, int]]
    """The first and the last data parser with a parameter, where that is not every one that has the operation."""

    def target(
        self, version: int, path: Mapping[str, str | int], query: Mapping[str, Value]
    ) -> tuple[str, list[tuple[str, str]]]:
        """Return the path and the query's pairs for a data parser.

        Raises:
            TooOld: this version has no such operation or parameter.
            TypeError: no version has such a parameter.
        """
        if version < self.since:
            raise TooOld(
                self.name, f"it needs {parser(self.since)}, the server speaks {parser(version)}"
            )
        parts = {name: quote(str(value), safe="") for name, value in path.items()}
        return (
            self.path.format(version=parser(version), **parts),
            [pair for name, value in query.items() for pair in self._pairs(version, name, value)],
        )

    def _pairs(self, version: int, name: str, value: Value) -> Iterator[tuple[str, str]]:
        if value is None:
            return
        if name not in self.query:
            known = ", ".join(self.query) or "no parameters"
            raise TypeError(f"{self.name} has no parameter {name!r}; it has {known}")
        first, last = self.limits.get(name, (self.since, version))
        if not first <= version <= last:
            raise TooOld(
                self.name,
                f"the parameter {name} needs {parser(first)} to {parser(last)}, the server speaks {parser(version)}",
            )
        several = isinstance(value, Iterable) and not isinstance(value, str)
        for one in value if several else (value,):  # type: ignore[union-attr]  # several says that it is iterable
            yield self.query[name], _text(one)


def parser(version: int) -> str:
    """Slurm's name of a version: v0.0.44."""
    return f"v0.0.{version}"


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return str(int(value.timestamp()))
        case _:
            return str(value)
