"""Conditions and annotations that show the state of a worker's Slurm node on its pod.

The conditions are those of SchedMD's slurm-operator. Other people's dashboards and health checkers
read these. A condition that holds has the status "True" and Slurm's reason as its message; one that
does not hold is absent. Annotations tell autoscalers whether the worker has jobs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slurmoperator.objects.pod_status import PodCondition
from slurmoperator.workers.situation import PodStage
from slurmruntime.model.nodes import SlurmNodeFacts
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
"""Slurm's states and flags that have a condition, and the suffix of its type."""

_URGENT: Final = frozenset(
    f"{STATE_PREFIX}{state}" for state in ("Drain", "Undrain", "Down", "Fail")
)
"""Conditions that others act on."""

KEPT_ANNOTATION: Final = "slurm-bridge.dev/kept-from-autoscalers"
"""On a worker's pod: our annotations for autoscalers, comma-separated; only those are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """What a pod should show, and does not."""

    desired: Mapping[str, str]
    """The types and messages of the conditions that it should have."""
    shown: Mapping[str, str | None]
    """Those that it has; see `current_conditions`."""
    annotations: Mapping[str, str | None]
    """The annotations to change; None removes one."""

    @property
    def is_urgent(self) -> bool:
        """Whether a condition changes that others act on."""
        return any(self.desired.get(kind) != self.shown.get(kind) for kind in _URGENT)


def change(
    node: SlurmNodeFacts | None,
    *,
    shown: Mapping[str, str | None],
    annotations: Mapping[str, str],
    stage: PodStage,
    is_guarded: bool,
) -> StateChange | None:
    """Return what a pod should show of its Slurm node, as that is listed; None if it shows it.

    Until a pod is first ready, the node in Slurm is that of its predecessor. Autoscalers should spare a guarded worker with jobs.
    """
    if stage is PodStage.OVER or not (shown or stage is PodStage.READY):
        return None
    desired = desired_conditions(node.states, node.reason) if node else {}
    has_jobs = (None if node is None else node.is_busy) if is_guarded else False
    changes = annotation_changes(annotations, has_jobs=has_jobs)
    if desired == shown and not changes:
        return None
    return StateChange(desired=desired, shown=shown, annotations=changes)


def desired_conditions(states: Iterable[str], reason: str) -> dict[str, str]:
    """Return the types and messages of the conditions that a pod should have."""
    return {f"{STATE_PREFIX}{STATES[state]}": reason for state in states if state in STATES}


def current_conditions(conditions: Iterable[PodCondition]) -> dict[str, str | None]:
    """Return the types and messages of the conditions that a pod has; None for one that does not hold, and so should be absent."""
    return {
        condition.type: condition.message if condition.status == "True" else None
        for condition in conditions
        if condition.type.startswith(STATE_PREFIX)
    }


def states_of(conditions: Iterable[PodCondition]) -> tuple[frozenset[str], str]:
    """Return the Slurm states that a pod's conditions show, if any, and Slurm's reason."""
    by_type = {f"{STATE_PREFIX}{name}": state for state, name in STATES.items()}
    holding = [
        condition
        for condition in conditions
        if condition.status == "True" and condition.type in by_type
    ]
    reason = next((condition.message for condition in holding if condition.message), "")
    return frozenset(by_type[condition.type] for condition in holding), reason


def annotation_changes(
    annotations: Mapping[str, str], *, has_jobs: bool | None
) -> dict[str, str | None]:
    """Return the changes of annotations by which autoscalers spare a pod while it has jobs.

    None removes one. Annotations that somebody else has written stay as they are. Nothing changes while `has_jobs` is unknown.
    """
    ours = {*annotations.get(KEPT_ANNOTATION, "").split(",")} & AUTOSCALERS.keys()
    missing = {key: text for key, text in AUTOSCALERS.items() if key not in annotations}
    if has_jobs and missing:
        return {**missing, KEPT_ANNOTATION: ",".join(sorted({*ours, *missing}))}
    if has_jobs is not False or KEPT_ANNOTATION not in annotations:
        return {}
    unchanged = [key for key in sorted(ours) if annotations.get(key) == AUTOSCALERS[key]]
    return dict.fromkeys([*unchanged, KEPT_ANNOTATION])
