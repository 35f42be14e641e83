"""How long to wait before the same thing is tried again."""

from datetime import datetime, timedelta


def delay(attempts: int, *, first: timedelta, cap: timedelta) -> timedelta:
    """Say how long to wait after so many attempts: 0, first, twice that, four times … at most the cap.

    No jitter: what is repeated here is spread by the moments at which the attempts were made.
    """
    if attempts <= 0:
        return timedelta(0)
    doublings = min(
        attempts - 1, 30
    )  # beyond that any cap is reached; 2**attempts would overflow timedelta
    return min(first * (1 << doublings), cap)


def left(
    attempts: int, last: datetime, now: datetime, *, first: timedelta, cap: timedelta
) -> timedelta:
    """Say how much of the delay after the last of these attempts is still to come; 0 if it is over."""
    return max(last + delay(attempts, first=first, cap=cap) - now, timedelta(0))
