"""Exponential back-off between attempts."""

from datetime import datetime, timedelta


def delay(attempts: int, *, first: timedelta, cap: timedelta) -> timedelta:
    """Return the wait after that many attempts: 0, first, 2 * first, 4 * first … up to the cap.

    No jitter: the attempts themselves were made at different times, which spreads the retries.
    """
    if attempts <= 0:
        return timedelta(0)
    doublings = min(attempts - 1, 30)  # any cap is reached by then; more would overflow timedelta
    return min(first * (1 << doublings), cap)


def left(
    attempts: int, last: datetime, now: datetime, *, first: timedelta, cap: timedelta
) -> timedelta:
    """Return how much of the delay after the last attempt remains; 0 once it is over."""
    return max(last + delay(attempts, first=first, cap=cap) - now, timedelta(0))
