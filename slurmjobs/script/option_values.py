"""The options of one job: which were chosen, in what order, and where."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from slurmjobs.script.options import AnyOption, SbatchOption

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OptionValue:
    """An option, its value, and its path: `line 3`, `fields.time`."""

    option: AnyOption
    value: Any
    path: str


@dataclass(frozen=True, slots=True)
class OptionValues:
    """The options of a job in order; if one has several values, the last counts."""

    all: Sequence[OptionValue] = field(default=())

    def get(self, option: SbatchOption[T]) -> T | None:
        """Return the value of an option; None if it was not chosen."""
        for chosen in reversed(self.all):
            if chosen.option is option:
                return chosen.value  # type: ignore[no-any-return]  # read by the option's own form
        return None

    def every(self, option: SbatchOption[T]) -> Iterator[T]:
        """Return all values of an option."""
        return (chosen.value for chosen in self.all if chosen.option is option)

    def has(self, *options: AnyOption) -> bool:
        """Check whether any of these options was chosen."""
        return any(chosen.option in options for chosen in self.all)

    def last_of(self, *options: AnyOption) -> OptionValue | None:
        """Return the last choice among several options that mean the same."""
        return next((chosen for chosen in reversed(self.all) if chosen.option in options), None)

    def path(self, *options: AnyOption) -> str:
        """Return the path of the last of these options; "options" if none was chosen."""
        chosen = self.last_of(*options)
        return chosen.path if chosen else "options"

    def without(self, *options: AnyOption) -> "OptionValues":
        """Return all options except these."""
        return OptionValues(tuple(chosen for chosen in self.all if chosen.option not in options))
