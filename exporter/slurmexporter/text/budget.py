"""Budgets of label values: the largest keep their names, the rest becomes `(other)`."""

import heapq
from collections.abc import Mapping
from typing import Final

OTHER: Final = "(other)"


class Admission:
    """Admits the first label values of a counter, forever.

    A counter's series must not come and go, so an admitted value keeps its series.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._admitted: set[str] = set()

    def name(self, value: str) -> str:
        """Return the value itself, or `(other)` if the budget is used up."""
        if value in self._admitted:
            return value
        if len(self._admitted) < self._most:
            self._admitted.add(value)
            return value
        return OTHER


def largest(weights: Mapping[str, float], most: int) -> frozenset[str]:
    """Return the names with the largest weights; of equal ones, the alphabetically first."""
    if len(weights) <= most:
        return frozenset(weights)
    return frozenset(heapq.nsmallest(most, weights, key=lambda name: (-weights[name], name)))
