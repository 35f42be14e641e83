"""Decide whether Slurm holds a node for the pods that run there.

A restored placeholder has to start before other jobs that wait for the nodes of its pods. So a node
whose pods have no placeholder is drained and takes no jobs. Once their placeholders wait in Slurm,
with a priority above every other job's, the drain is lifted.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Evidence


class Hold(enum.Enum):
    """Whether Slurm holds a node for the pods that run there."""

    HELD = "held"
    """All of them have a running placeholder, or no pods are there."""
    RESTORING = "restoring"
    """Some placeholders are about to start there; none is missing."""
    UNDECIDED = "undecided"
    """Some pods have no placeholder, and an operator must decide what happens to them."""
    UNSURE = "unsure"
    """Slurm does not report, or not yet: change nothing."""
    MISSING = "missing"
    """Some placeholders have to be submitted again; whatever Slurm starts there first takes their
    room."""


_WORST_FIRST = (Hold.MISSING, Hold.UNSURE, Hold.RESTORING, Hold.UNDECIDED)
"""A pod that waits for an operator does not keep others from starting again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """What stands behind one pod in Slurm."""

    pod: Pod
    cell: tuple[Row, Column]
    """Where the pod is in the lifecycle's table."""
    evidence: Evidence
    """What became of its placeholder, if that is missing."""
    refusal: SubmitRefusal | None
    """Why Slurm refused another placeholder; None if it refused none."""


def of_node(backings: Iterable[Backing]) -> Hold:
    """Return whether Slurm holds a node for all of its pods."""
    return hold(map(hold_for, backings))


def hold(pods: Iterable[Hold]) -> Hold:
    """Combine the holds of a node's pods into the node's own."""
    holds = set(pods)
    return next((worst for worst in _WORST_FIRST if worst in holds), Hold.HELD)


def hold_for(backing: Backing) -> Hold:
    """Return the hold for one pod."""
    row, column = backing.cell
    if row not in (Row.PLACED, Row.BOUND):
        return Hold.HELD
    match column:
        case Column.NONE:
            return Hold.MISSING if _comes_back(backing) else Hold.UNDECIDED
        case Column.UNKNOWN:
            return Hold.UNSURE
        case Column.WAITING:
            return Hold.RESTORING
        case _:
            return Hold.HELD


def _comes_back(backing: Backing) -> bool:
    pod, evidence = backing.pod, backing.evidence
    if backing.refusal is not None or pod.grant is None:
        return False
    is_requested = evidence is Evidence.NONE and pod.when_lost == "restore"
    return is_requested or evidence in (Evidence.PENDING, Evidence.LOST)
