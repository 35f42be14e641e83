"""Measure the difference between two clocks with one request, whose response may have been slow."""

from datetime import datetime, timedelta

_WHOLE = timedelta(seconds=1)
"""Both systems report whole seconds."""


def skew_s(told: datetime, *, asked: datetime, answered: datetime) -> float:
    """Return their clock minus ours, beyond what the response time can explain."""
    if told > answered:
        return (told - answered).total_seconds()
    return min((told + _WHOLE - asked).total_seconds(), 0.0)
