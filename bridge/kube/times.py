"""Moments as the API server wants them."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Write an aware datetime so that both `Time` and `MicroTime` accept it: the latter wants all six digits."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
