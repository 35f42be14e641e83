"""Metric families, samples and histograms."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["gauge", "counter", "histogram"]


class Family(Struct, frozen=True):
    """A metric family; the page of metrics lists all of them."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


def gauge(name: str, words: str, *labels: str) -> Family:
    """Return a gauge with this help text and these labels."""
    return Family(name, "gauge", words, labels)


def counter(name: str, words: str, *labels: str) -> Family:
    """Return a counter with this help text and these labels."""
    return Family(name, "counter", words, labels)


def histogram(name: str, words: str, *labels: str) -> Family:
    """Return a histogram with this help text and these labels."""
    return Family(name, "histogram", words, labels)


@dataclass(slots=True)
class Histogram:
    """Counts of observations by upper bound."""

    bounds: Sequence[float]
    """Ascending upper bounds, without infinity."""
    counts: list[int]
    """Observations by bucket, not cumulative; the last one is above all bounds."""
    total: float = 0.0

    @classmethod
    def of(cls, bounds: Sequence[float]) -> "Histogram":
        """Return an empty histogram with these upper bounds."""
        return cls(bounds, [0] * (len(bounds) + 1))

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def copy(self) -> "Histogram":
        """Return a histogram that later observations do not change."""
        return Histogram(self.bounds, list(self.counts), self.total)


Value: TypeAlias = float | Histogram
Sample: TypeAlias = tuple[tuple[str, ...], Value]
"""The values of the family's labels, in their order, and the sample's value."""
Metric: TypeAlias = tuple[Family, Iterable[Sample]]


def by_name(values: Mapping[str, Value]) -> list[Sample]:
    """Return the samples of a family with one label, sorted by its value."""
    return [((name,), values[name]) for name in sorted(values)]
