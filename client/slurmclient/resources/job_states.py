"""States of jobs (squeue(1), "JOB STATE CODES")."""

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
"""Base states of a job that has ended, unless it is requeued."""

UNFINISHED: Final = frozenset({"COMPLETING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"})
"""Flags beside a base state: the job still occupies its nodes, or will run again."""


def has_ended(states: Iterable[str]) -> bool:
    """Check whether a job with this `job_state` has ended for good and released its nodes."""
    all_states = frozenset(states)
    return bool(all_states & ENDED) and not all_states & UNFINISHED
