"""THE machine for a worker: decides from its pod, the NodeSet, and what Slurm reliably says.

Pure and level-triggered, as `bridge.domain.lifecycle.table` is for pods. Rows are the situations of the pod, columns those of the
Slurm node; the cells are functions of `rules`. docs/nodeset-lifecycle.md is generated from here.
"""

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, assert_never

from slurmoperator.workers import rules
from slurmoperator.workers.actions import WorkerDecision
from slurmoperator.workers.situation import BUSY, PodStage, WorkerFacts

WorkerRule = Callable[[WorkerFacts], WorkerDecision]

_QUIET_READINGS: Final = 2
"""Consecutive readings that must show a node without jobs before its pod is deleted."""


class WorkerRow(enum.Enum):
    """The pod's situation."""

    NOTHING = "not wanted, no pod"
    WANTED = "wanted, no pod"
    STARTING = "kept, not ready"
    SERVING = "kept, ready"
    UNNEEDED = "goes, never started"
    LEAVING = "goes"
    OVER = "over"
    TERMINATING = "terminating"


class WorkerColumn(enum.Enum):
    """What Slurm reliably says of its node."""

    MISSING = "surely missing"
    FREE = "free"
    BUSY = "busy"
    DRAINING = "drained, with jobs"
    SETTLING = "drained, seems free"
    DRAINED = "surely drained"
    DOWN = "down"
    UNKNOWN = "unknown"


def _cells(
    *,
    missing: WorkerRule,
    in_service: WorkerRule,
    draining: WorkerRule,
    settling: WorkerRule,
    drained: WorkerRule,
    down: WorkerRule,
    unknown: WorkerRule,
) -> Mapping[WorkerColumn, WorkerRule]:
    """Return a row's rules by column; each column is a parameter, so that none can be left out."""
    return MappingProxyType(
        {
            WorkerColumn.MISSING: missing,
            WorkerColumn.FREE: in_service,
            WorkerColumn.BUSY: in_service,
            WorkerColumn.DRAINING: draining,
            WorkerColumn.SETTLING: settling,
            WorkerColumn.DRAINED: drained,
            WorkerColumn.DOWN: down,
            WorkerColumn.UNKNOWN: unknown,
        }
    )


def _all(rule: WorkerRule) -> Mapping[WorkerColumn, WorkerRule]:
    return MappingProxyType(dict.fromkeys(WorkerColumn, rule))


TABLE: Mapping[WorkerRow, Mapping[WorkerColumn, WorkerRule]] = MappingProxyType(
    {
        WorkerRow.NOTHING: _all(rules.rest),
        WorkerRow.WANTED: _all(rules.create),
        WorkerRow.STARTING: _cells(
            missing=rules.begin,
            in_service=rules.serve,
            draining=rules.come_back,
            settling=rules.come_back,
            drained=rules.come_back_or_release,
            down=rules.serve,
            unknown=rules.doubt,
        ),
        WorkerRow.SERVING: _cells(
            missing=rules.register,
            in_service=rules.serve,
            draining=rules.keep_drained,
            settling=rules.keep_drained,
            drained=rules.release,
            down=rules.serve,
            unknown=rules.doubt,
        ),
        WorkerRow.UNNEEDED: _all(rules.delete),
        WorkerRow.LEAVING: _cells(
            missing=rules.doubt,
            in_service=rules.drain,
            draining=rules.wait_for_jobs,
            settling=rules.recheck,
            drained=rules.delete,
            down=rules.drain,
            unknown=rules.doubt,
        ),
        WorkerRow.OVER: _all(rules.delete),
        WorkerRow.TERMINATING: _all(rules.wait_for_end),
    }
)


def decide(facts: WorkerFacts) -> WorkerDecision:
    """Return what to do next for this worker."""
    return TABLE[row_of(facts)][column_of(facts)](facts)


def row_of(facts: WorkerFacts) -> WorkerRow:
    """Derive the pod's situation."""
    if facts.pod is None:
        return WorkerRow.NOTHING if facts.goes else WorkerRow.WANTED
    match facts.pod.stage:
        case PodStage.TERMINATING:
            return WorkerRow.TERMINATING
        case PodStage.OVER:
            return WorkerRow.OVER
        case PodStage.UNSTARTED:
            return WorkerRow.UNNEEDED if facts.goes else WorkerRow.STARTING
        case PodStage.STARTING:
            return WorkerRow.LEAVING if facts.goes else WorkerRow.STARTING
        case PodStage.READY:
            return WorkerRow.LEAVING if facts.goes else WorkerRow.SERVING
        case _:
            assert_never(facts.pod.stage)


def column_of(facts: WorkerFacts) -> WorkerColumn:
    """Derive what Slurm reliably says."""
    seen = facts.seen
    if not seen.is_sure:
        return WorkerColumn.UNKNOWN
    if seen.node is None:
        return WorkerColumn.MISSING
    states = seen.node.states
    is_busy = seen.has_jobs or bool(states & BUSY)
    if "DRAIN" in states and "UNDRAIN" not in states:
        if is_busy:
            return WorkerColumn.DRAINING
        is_quiet = seen.quiet_readings >= _QUIET_READINGS
        return WorkerColumn.DRAINED if is_quiet else WorkerColumn.SETTLING
    if "DOWN" in states:
        return WorkerColumn.DOWN
    return WorkerColumn.BUSY if is_busy else WorkerColumn.FREE
