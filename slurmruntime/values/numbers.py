"""Whole numbers from outside: however long or large, reading them is cheap and never raises.

Python refuses to read more than 4300 digits, and a `timedelta` or `datetime` refuses most 64-bit
numbers. The API server bounds neither annotations nor grace periods.
"""

from datetime import UTC, datetime

MOST = 2**31 - 1
"""Large enough for every number that is requested of Slurm, and for its job ids."""

LONGEST_S = (2**63 - 1) // 10**9
"""Seconds, 292 years: what fits into Go's `time.Duration`. Beyond it the API server's own
arithmetic overflows."""

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(3000, 1, 1, tzinfo=UTC)
"""Moments are clamped to this range, so that adding or subtracting `LONGEST_S` stays within
Python's calendar."""


def integer(text: str, *, most: int = MOST) -> int | None:
    """Read decimal digits; None for anything else, and for a number above `most`."""
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0")
    if len(digits) > len(str(most)):
        return None
    number = int(digits or "0")
    return number if number <= most else None


def within(number: int, least: int, most: int) -> int:
    """Clamp a number to a range."""
    return max(least, min(number, most))


def seconds(number: int) -> int:
    """Clamp a number of seconds to what a `timedelta` can hold: at least 0, at most `LONGEST_S`."""
    return within(number, 0, LONGEST_S)


def moment(time: datetime) -> datetime:
    """Clamp a moment to `EARLIEST` … `LATEST`."""
    return max(EARLIEST, min(time, LATEST))
