"""Values that are durations or points in time.

Sources: `time_str2secs` and `_parse_time` of Slurm's `parse_time.c`, and sbatch(1).
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from slurmjobs.script.values.form import UnreadableValue, ValueForm
from slurmjobs.script.values.numbers import INT_MAX, POSITIVE

UNLIMITED: Final = 2**32 - 1
"""The infinite duration, in minutes or seconds (INFINITE of slurm.h)."""

_DURATION = re.compile(
    r"(?:([0-9]{1,9})-)?"
    r"(?:([0-9]{1,9})(?::([0-9]{1,9})(?::([0-9]{1,9}))?)?)?"
)


def _seconds(text: str) -> int:
    """Return seconds: `m`, `m:s`, `h:m:s`, `d-`, `d-h`, `d-h:m`, `d-h:m:s`."""
    if text.lower() in {"-1", "infinite", "unlimited"}:
        return UNLIMITED
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise UnreadableValue("it is not a duration")
    days, first, second, third = match.groups()
    if days is not None or third is not None:
        hours, minutes, seconds = first, second, third
    else:
        hours, minutes, seconds = "0", first, second
    total = int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60
    total += int(seconds or 0)
    if total > INT_MAX:
        raise UnreadableValue("it is longer than 68 years")
    return total


def _minutes(text: str) -> int:
    seconds = _seconds(text)
    return seconds if seconds == UNLIMITED else -(-seconds // 60)


_HOW = "minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]"
LIMIT_MIN = ValueForm(
    f"{_HOW}, or UNLIMITED",
    lambda text: _minutes(text) or UNLIMITED,
)
DURATION_S = ValueForm(_HOW, _seconds)


@dataclass(frozen=True, slots=True)
class SwitchLimit:
    """The most leaf switches for a job, and how long to wait for such nodes."""

    switches: int
    wait_s: int | None = None


def _switches(text: str) -> SwitchLimit:
    count, at, wait = text.partition("@")
    return SwitchLimit(POSITIVE.read(count), _seconds(wait) if at else None)


SWITCHES = ValueForm("a count of switches, or count@duration", _switches)


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """Reduction of a running job's memory to its usage plus a margin, after a delay."""

    margin_percent: int
    delay_min: int


def _memory_update(text: str) -> MemoryUpdate:
    margin, at, delay = text.partition("@")
    if not at:
        raise UnreadableValue("it has no @")
    percent, minutes = POSITIVE.read(margin), _minutes(delay)
    if percent > 2**16 - 1 or not 0 < minutes <= 2**16 - 1:
        raise UnreadableValue("margin or delay is not between 1 and 65535")
    return MemoryUpdate(percent, minutes)


MEMORY_UPDATE = ValueForm("margin@delay: a percentage, and a duration", _memory_update)


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A point in time as the user wrote it: absolute, or relative to the moment it is evaluated."""

    unix_s: int | None = None
    after_now_s: int | None = None
    day: str = ""
    """`today`, `tomorrow`, `2030-12-24`, `12-24` (the next one), or "" for the next such time."""
    clock: str = ""
    """`14:30:00`, or "" for midnight."""

    def at(self, now: datetime) -> datetime:
        """Return the point in time, in the zone of `now`."""
        if self.unix_s is not None:
            return datetime.fromtimestamp(self.unix_s, tz=now.tzinfo)
        if self.after_now_s is not None:
            return (now.astimezone(UTC) + timedelta(seconds=self.after_now_s)).astimezone(
                now.tzinfo
            )
        hour, minute, second = (int(part) for part in (self.clock or "0:0:0").split(":"))
        day = self._date(now, (hour, minute))
        return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=now.tzinfo)

    def _date(self, now: datetime, clock: tuple[int, int]) -> date:
        today, tomorrow = now.date(), (now + timedelta(days=1)).date()
        present = (now.hour, now.minute)
        match self.day.split("-"):
            case [""]:
                return today if clock > present else tomorrow
            case ["today"]:
                return today
            case ["tomorrow"]:
                return tomorrow
            case [month, day]:
                moment = (int(month), int(day), *clock)
                is_ahead = moment > (today.month, today.day, *present)
                return _day(today.year + (not is_ahead), int(month), int(day))
            case parts:
                return _day(*(int(part) for part in parts))


def _day(year: int, month: int, day: int) -> date:
    """Return a day; like mktime(3), run over into the next month if the month has fewer days."""
    return date(year, month, 1) + timedelta(days=day - 1)


_NOON: Final = 12
_FURTHEST_S: Final = 1500 * 365 * 86400
"""From now, or from 1970: within what `datetime` can hold in every zone."""
_FIRST_YEAR: Final = 1900
_EPOCH = re.compile(r"uts([0-9]{7,12})", re.IGNORECASE)
_NOW = re.compile(
    r"now[ \t]*+(?:([+-])[ \t]*+([0-9]{1,9})[ \t]*+(second|minute|hour|day|week)?s?)?[ \t]*+",
    re.IGNORECASE,
)
_UNIT_S: Final = {"": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_NAMED: Final = {
    "midnight": "00:00:00",
    "noon": "12:00:00",
    "elevenses": "11:00:00",
    "fika": "15:00:00",
    "teatime": "16:00:00",
}
_PIECE = re.compile(
    r"(?P<day>today|tomorrow)"
    r"|(?P<named>midnight|noon|elevenses|fika|teatime)"
    r"|(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?[ \t]*(?P<half>am|pm)?"
    r"|(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<mday>[0-9]{1,2})"
    r"|(?P<us_month>[0-9]{1,2}+)[./]?(?P<us_day>[0-9]{1,2}+)(?:[./]?(?P<us_year>[0-9]{2}))?"
    r"|[ \t-]|(?-i:T)",
    re.IGNORECASE,
)


def _point(text: str) -> PointInTime:
    if match := _EPOCH.fullmatch(text):
        return PointInTime(unix_s=_within_reach(int(match[1])))
    if match := _NOW.fullmatch(text):
        seconds = int(match[2] or 0) * _UNIT_S[(match[3] or "").lower()]
        return PointInTime(after_now_s=_within_reach(-seconds if match[1] == "-" else seconds))
    day = clock = ""
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            raise UnreadableValue(f"{text[position : position + 20]!r} is not a day or a time")
        day, clock = _day_of(piece) or day, _clock_of(piece) or clock
        position = piece.end()
    if not (day or clock):
        raise UnreadableValue("it has neither a day nor a time")
    return PointInTime(day=day, clock=clock)


def _within_reach(seconds: int) -> int:
    if abs(seconds) > _FURTHEST_S:
        raise UnreadableValue("it is more than 1500 years away")
    return seconds


def _clock_of(piece: re.Match[str]) -> str:
    if piece["named"]:
        return _NAMED[piece["named"].lower()]
    if piece["hour"] is None:
        return ""
    hour, minute, second = int(piece["hour"]), int(piece["minute"]), int(piece["second"] or 0)
    match (piece["half"] or "").lower():
        case "pm" if hour <= _NOON:
            hour = hour % _NOON + _NOON
        case "am" if hour <= _NOON:
            hour %= _NOON
        case "":
            pass
        case _:
            raise UnreadableValue("am and pm need an hour up to 12")
    try:
        return time(hour, minute, second).isoformat()
    except ValueError:
        raise UnreadableValue("there is no such time of day") from None


def _day_of(piece: re.Match[str]) -> str:
    if piece["day"]:
        return piece["day"].lower()
    if piece["year"]:
        parts = (int(piece["year"]), int(piece["month"]), int(piece["mday"]))
    elif piece["us_month"]:
        year = piece["us_year"]
        parts = (2000 + int(year or 0), int(piece["us_month"]), int(piece["us_day"]))
    else:
        return ""
    year_number, month, day = parts
    if year_number < _FIRST_YEAR or not (1 <= month <= 12 and 1 <= day <= 31):  # noqa: PLR2004  # months and days
        raise UnreadableValue("there is no such day")
    without_year = piece["us_month"] and not piece["us_year"]
    return f"{month:02}-{day:02}" if without_year else f"{year_number:04}-{month:02}-{day:02}"


POINT_IN_TIME = ValueForm(
    "a time, a day or both: 16:00, teatime, tomorrow, 2030-12-24T08:00, 12/24, now+2hours", _point
)
