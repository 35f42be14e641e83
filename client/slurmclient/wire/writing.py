"""Encoding request bodies."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

_IN_MINUTES: Final = frozenset({"time_limit", "time_minimum", "duration"})
"""The fields of requests that count minutes; all other durations are in seconds."""


def encode(fields: Mapping[str, object]) -> bytes:
    """Encode a request body as JSON.

    A `datetime` becomes seconds since 1970, a `timedelta` minutes or seconds as the field demands,
    rounded up. `math.inf` becomes Slurm's "infinite", a set a sorted list. Fields that are None are
    left out.
    """
    return msgspec.json.encode(_plain(fields))


def _plain(value: object, key: str = "") -> Any:
    match value:
        case datetime():
            return {"set": True, "number": int(value.timestamp())}
        case timedelta():
            seconds = math.ceil(value.total_seconds())
            return {
                "set": True,
                "number": math.ceil(seconds / 60) if key in _IN_MINUTES else seconds,
            }
        case float() if value == math.inf:
            return {"set": True, "infinite": True}
        case Mapping():
            return {name: _plain(item, name) for name, item in value.items() if item is not None}
        case frozenset() | set():
            return sorted(value)
        case list() | tuple():
            return [_plain(item, key) for item in value]
        case Struct():
            return _plain(msgspec.structs.asdict(value))
        case _:
            return value
