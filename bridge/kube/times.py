"""Format timestamps for the API server."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Format an aware datetime for both `Time` and `MicroTime`, which requires all six digits."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
