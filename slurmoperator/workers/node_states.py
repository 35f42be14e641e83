"""How the state of a worker's Slurm node is told on its pod: a condition for each state, as SchedMD's slurm-operator writes them.

Dashboards and health checkers of others read these. A condition that holds has the status "True" and Slurm's reason as its
message; one that does not hold is not there. Annotations tell autoscalers whether the worker has jobs.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from slurmoperator.objects.pod_status import PodCondition
from slurmruntime.values.names import AUTOSCALERS

STATE_PREFIX: Final = "SlurmNodeState"
STATES: Final[Mapping[str, str]] = {
    "ALLOCATED": "Allocated",
    "DOWN": "Down",
    "ERROR": "Error",
    "FUTURE": "Future",
    "IDLE": "Idle",
    "MIXED": "Mixed",
    "UNKNOWN": "Unknown",
    "COMPLETING": "Completing",
    "DRAIN": "Drain",
    "FAIL": "Fail",
    "INVALID": "Invalid",
    "INVALID_REG": "InvalidReg",
    "MAINTENANCE": "Maintenance",
    "NOT_RESPONDING": "NotResponding",
    "UNDRAIN": "Undrain",
}
"""Slurm's states and flags that have a condition, and how its type ends. Slurm's other flags are told to nobody."""

KEPT_ANNOTATION: Final = "slurm-bridge.dev/kept-from-autoscalers"
"""On a worker's pod: which annotations for autoscalers are ours, with commas between them; nobody takes away what is not."""


def wanted(states: Iterable[str], reason: str) -> dict[str, str]:
    """Return the types and messages of the conditions that a pod is to have."""
    return {f"{STATE_PREFIX}{STATES[state]}": reason for state in states if state in STATES}


def told(conditions: Iterable[PodCondition]) -> dict[str, str | None]:
    """Return the types and messages of those that it has; None for one that does not hold, and is not to be there."""
    return {
        condition.type: condition.message if condition.status == "True" else None
        for condition in conditions
        if condition.type.startswith(STATE_PREFIX)
    }


def states_of(conditions: Iterable[PodCondition]) -> tuple[frozenset[str], str]:
    """Return the states that a pod's conditions tell, and Slurm's reason; no states if nobody has told any."""
    by_type = {f"{STATE_PREFIX}{name}": state for state, name in STATES.items()}
    holding = [
        condition
        for condition in conditions
        if condition.status == "True" and condition.type in by_type
    ]
    reason = next((each.message for each in holding if each.message), "")
    return frozenset(by_type[each.type] for each in holding), reason


def annotated(annotations: Mapping[str, str], *, has_jobs: bool | None) -> dict[str, str | None]:
    """Return how a pod's annotations change, so that autoscalers spare it while it has jobs; None takes one away.

    What somebody else has written there stays as it is.

    Args:
        annotations: that it has.
        has_jobs: None if nobody knows: then nothing changes.
    """
    ours = {*annotations.get(KEPT_ANNOTATION, "").split(",")} & AUTOSCALERS.keys()
    missing = {key: text for key, text in AUTOSCALERS.items() if key not in annotations}
    if has_jobs and missing:
        return {**missing, KEPT_ANNOTATION: ",".join(sorted({*ours, *missing}))}
    if has_jobs is not False or KEPT_ANNOTATION not in annotations:
        return {}
    unchanged = [key for key in sorted(ours) if annotations.get(key) == AUTOSCALERS[key]]
    return dict.fromkeys([*unchanged, KEPT_ANNOTATION])
