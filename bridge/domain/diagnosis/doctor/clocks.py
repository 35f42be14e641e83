"""How far two clocks are apart, told by one question: an answer may have been long under way."""

from datetime import datetime, timedelta

_WHOLE = timedelta(seconds=1)
"""Both systems tell whole seconds."""


def skew_s(told: datetime, *, asked: datetime, answered: datetime) -> float:
    """Their clock less ours, as far as the time between asking and hearing the answer does not explain it."""
    if told > answered:
        return (told - answered).total_seconds()
    return min((told + _WHOLE - asked).total_seconds(), 0.0)
