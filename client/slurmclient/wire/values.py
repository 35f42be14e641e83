"""Numbers that may be absent, and moments."""

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias


class _Anything(type):
    """What a reader returns need not be of the marker's own type."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


if TYPE_CHECKING:
    Number: TypeAlias = int | float | None
    Time: TypeAlias = datetime | None
else:

    class Number(metaclass=_Anything):
        """A number; None if it is not set, `math.inf` if it has no limit."""

    class Time(metaclass=_Anything):
        """A moment in UTC; None if it is not set, or 0."""


def number(value: object) -> Number:
    """Read a number as slurmrestd writes it.

    Raises:
        ValueError: it is none.
    """
    if type(value) is dict:  # thousands of times a list: a match statement takes twice as long
        if value.get("infinite"):
            return math.inf
        if not value.get("set", True):
            return None
        value = value.get("number")
    if value is None or type(value) in {int, float}:
        return value  # type: ignore[return-value]  # just checked
    raise ValueError(f"expected a number, got {value!r}")


def moment(value: object) -> datetime | None:
    """Read a moment as slurmrestd writes it: 0 and "infinite" are none.

    Raises:
        ValueError: it is none, or outside of what a datetime can hold.
    """
    seconds = number(value)
    if not seconds or seconds == math.inf:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{seconds} is no moment: {error}") from error


def dec_hook(kind: object, value: object) -> object:
    if kind is Number:
        return number(value)
    if kind is Time:
        return moment(value)
    raise NotImplementedError(f"{kind} cannot be read from JSON")
