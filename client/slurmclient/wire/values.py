"""Optional numbers and timestamps, as slurmrestd writes them.

slurmrestd writes an optional number as `{"set", "infinite", "number"}` and a time as seconds since
1970, plain or in that form. A struct declares such fields as `Number` and `Time`.
"""

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct


class _Anything(type):
    """Metaclass of the markers: msgspec checks that `dec_hook` returns an instance of the type."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


if TYPE_CHECKING:
    Number: TypeAlias = int | float | None
    Time: TypeAlias = datetime | None
else:

    class Number(metaclass=_Anything):
        """A number; None if it is not set, `math.inf` if it is unlimited."""

    class Time(metaclass=_Anything):
        """A `datetime` in UTC; None if it is not set, 0 or infinite."""


class OptionalNumber(Struct, frozen=True):
    """A number that may be absent or unlimited, as slurmrestd writes it; `set` with 0 often means "none".

    `Number` is decoded by Python code: a job has so many of them that it takes 25 µs instead of 12 µs.
    """

    set: bool = False
    infinite: bool = False
    number: float = 0

    @property
    def positive(self) -> int | None:
        """The number if it is set and above 0; else None."""
        return int(self.number) if self.set and not self.infinite and self.number > 0 else None


NOT_SET: Final = OptionalNumber()


def number(value: object) -> Number:
    """Decode an optional number: a number, null or `{"set": bool, "infinite": bool, "number": int}`.

    Raises:
        ValueError: If it is none of these.
    """
    if (
        type(value) is dict
    ):  # called thousands of times a list; a match statement takes twice as long
        if value.get("infinite"):
            return math.inf
        if not value.get("set", True):
            return None
        value = value.get("number")
    if value is None or type(value) in {int, float}:
        return value  # type: ignore[return-value]  # just checked
    raise ValueError(f"expected a number, got {value!r}")


def moment(value: object) -> datetime | None:
    """Decode seconds since 1970, in any form that `number` accepts, into UTC; None if not set, 0 or infinite.

    Raises:
        ValueError: If it is not a timestamp, or out of the range of `datetime`.
    """
    seconds = number(value)
    if not seconds or seconds == math.inf:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"expected seconds since 1970, got {seconds}: {error}") from error


def dec_hook(kind: object, value: object) -> object:
    """Decode a `Number` or a `Time`, as the hook of a msgspec decoder.

    Raises:
        NotImplementedError: If the struct has a field of another type that msgspec does not know.
    """
    if kind is Number:
        return number(value)
    if kind is Time:
        return moment(value)
    raise NotImplementedError(f"{kind} cannot be read from JSON")
