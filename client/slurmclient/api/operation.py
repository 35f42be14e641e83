"""An operation of slurmrestd, and how it becomes a request in one version of the API."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from slurmclient.errors import TooOld

VERSIONS: Final = (45, 44, 43, 42)
"""The API versions that we speak, newest first: those of Slurm 26.05, 25.11, 25.05 and 24.11."""

_TAKE_SLUIDS: Final = 45
"""The first API version of which every slurmrestd takes a sluid in a path: v0.0.45."""
_SLUID: Final = re.compile("s[0-9A-HJKMNP-TV-Z]{13}")

Value: TypeAlias = str | int | bool | datetime | Iterable[str | int] | None
"""The value of a query parameter; a list repeats the parameter, None leaves it out."""

RawCall: TypeAlias = Callable[
    [str, Mapping[str, str | int], Mapping[str, Value], object], Awaitable[dict[str, Any]]
]
"""Performs an operation, given its name, path parameters, query parameters and body."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of slurmrestd, in all versions of the API that have it."""

    name: str
    method: str
    path: str
    """A template with {version} and the path's parameters."""
    since: int
    """The oldest version that has it: 44 is v0.0.44."""
    mutates: bool
    """Whether it changes something, and must not be repeated blindly.

    The method does not tell: `GET /reconfigure` changes something.
    """
    query: Mapping[str, str]
    """Query parameters: our names to Slurm's, which are not always identifiers."""
    limits: Mapping[str, tuple[int, int]]
    """The first and last version of each parameter that not every version of the operation has."""

    def target(
        self, version: int, path: Mapping[str, str | int], query: Mapping[str, Value]
    ) -> tuple[str, list[tuple[str, str]]]:
        """Return the path, percent-encoded, and the query's pairs in a version of the API: 45 is v0.0.45.

        Raises:
            TooOld: If this version has no such operation or parameter, or takes no sluid.
            TypeError: If no version has such a parameter.
            ValueError: If a parameter of the path is empty, or would change the path's meaning.
        """
        if version < self.since:
            raise TooOld(
                self.name, f"it needs {parser(self.since)}, the server speaks {parser(version)}"
            )
        parts = {name: self._segment(name, str(value)) for name, value in path.items()}
        if version < _TAKE_SLUIDS and _SLUID.fullmatch(sluid := parts.get("job_id", "")):
            raise TooOld(
                self.name,
                f"a job is named by its id before {parser(_TAKE_SLUIDS)}, and the server speaks"
                f" {parser(version)}: got the sluid {sluid}",
            )
        return (
            self.path.format(version=parser(version), **parts),
            [pair for name, value in query.items() for pair in self._pairs(version, name, value)],
        )

    def _segment(self, name: str, value: str) -> str:
        if value.isascii() and value.isalnum():
            return value  # most of them, and quoting takes ten times as long
        if value in {"", ".", ".."}:
            raise ValueError(f"{self.name}: expected a {name}, got {value!r}")
        return quote(value, safe="")

    def _pairs(self, version: int, name: str, value: Value) -> Iterator[tuple[str, str]]:
        if value is None:
            return
        if name not in self.query:
            known = ", ".join(self.query) or "no parameters"
            raise TypeError(f"{self.name} has no parameter {name!r}; it has {known}")
        first, last = self.limits.get(name, (0, version))
        if not first <= version <= last:
            raise TooOld(
                self.name,
                f"the parameter {name} needs {parser(first)} to {parser(last)}, the server speaks {parser(version)}",
            )
        if isinstance(value, str | int | datetime):
            yield self.query[name], _text(value)
        else:
            for one in value:
                yield self.query[name], _text(one)


def parser(version: int) -> str:
    """Return Slurm's name of a version: v0.0.44 for 44."""
    return f"v0.0.{version}"


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime():
            return str(int(value.timestamp()))
        case _:
            return str(value)
