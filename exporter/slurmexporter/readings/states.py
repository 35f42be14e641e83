"""States of jobs and nodes: a base state and flags (squeue(1), sinfo(1))."""

from collections.abc import Iterable
from typing import Final

JOB_STATES: Final = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "PENDING",
    "PREEMPTED",
    "RUNNING",
    "SUSPENDED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "LAUNCH_FAILED",
)
"""Base states of jobs; a job has one."""
LOST: Final = "LOST"
"""The end of a job that slurmctld forgot before the exporter saw its end."""
OTHER_STATE: Final = "OTHER"
"""A base state that this version does not know."""
ALIVE: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED"})
ENDED: Final = frozenset(JOB_STATES) - ALIVE
HOLDING: Final = frozenset({"RUNNING", "SUSPENDED"})
"""Base states of jobs that hold their resources."""
JOB_FLAGS: Final = (
    "COMPLETING",
    "CONFIGURING",
    "EXPEDITING",
    "POWER_UP_NODE",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "RESV_DEL_HOLD",
    "REVOKED",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
)
NODE_STATES: Final = ("ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN")
NODE_FLAGS: Final = (
    "BLOCKED",
    "CLOUD",
    "COMPLETING",
    "DRAIN",
    "DYNAMIC_FUTURE",
    "DYNAMIC_NORM",
    "EXTERNAL",
    "FAIL",
    "INVALID_REG",
    "MAINTENANCE",
    "NOT_RESPONDING",
    "PLANNED",
    "POWERED_DOWN",
    "POWERING_DOWN",
    "POWERING_UP",
    "POWER_DOWN",
    "POWER_UP",
    "REBOOT_ISSUED",
    "REBOOT_REQUESTED",
    "RESERVED",
)


def base_state(states: Iterable[str], known: tuple[str, ...]) -> str:
    """Return the base state among a job's or node's states; `OTHER` if none is known."""
    all_states = frozenset(states)
    return next((state for state in known if state in all_states), OTHER_STATE)
