"""A chapter: a part of a page that needs the same readings and is rendered at once."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from slurmexporter.families.picture import Picture
from slurmexporter.text.family import Family, Metric, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many label values get series of their own."""

    top_users: int = 100
    """The users with the most jobs; the rest is `(other)`. 0 for no series by user."""
    top_accounts: int = 200
    """The accounts with the most jobs; the rest is `(other)`."""
    node_series: bool = True
    """Whether each node has series of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A part of a page; it is left out while one of its sources has no fresh reading."""

    name: str
    sources: tuple[str, ...]
    """Attributes of `Picture`."""
    families: tuple[Family, ...]
    """All families that `write` may return, for the documentation."""
    write: Callable[[Picture, Limits], Iterable[Metric]]


class MetricBuilder:
    """Collects samples by family; families keep the order of their first sample."""

    def __init__(self) -> None:
        self._samples: dict[Family, list[Sample]] = {}

    def add(self, family: Family, value: float, *labels: str) -> None:
        """Add a sample."""
        self._samples.setdefault(family, []).append((labels, value))

    def __iter__(self) -> Iterator[Metric]:
        yield from self._samples.items()
