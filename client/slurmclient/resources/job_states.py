"""States of jobs."""

from collections.abc import Iterable
from typing import Final

ENDED: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    }
)
"""Base states after which a job does not run any more, unless it is requeued."""


UNFINISHED: Final = frozenset({"COMPLETING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"})
"""Flags beside them that say: not yet, or not for good."""


def has_ended(states: Iterable[str]) -> bool:
    """Check whether a job with these states is over, its nodes freed."""
    found = frozenset(states)
    return bool(found & ENDED) and not found & UNFINISHED
