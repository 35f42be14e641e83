"""Report a bug of ours on the SlurmJob whose reconciliation it broke."""

from datetime import datetime
from typing import Final

import msgspec

from slurmjobs.lifecycle.actions import JobDecision, Report
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values.faults import shortened

CONDITION: Final = "Reconciled"
REASON: Final = "ReconcileFailed"


def decision(job: SlurmJobObject, error: Exception, now: datetime) -> JobDecision:
    """Report the error once, as a condition beside the last status; the next ordinary report removes it."""
    before = job.status
    others = tuple(condition for condition in before.conditions if condition.type != CONDITION)
    previous = next(
        (condition for condition in before.conditions if condition.type == CONDITION), None
    )
    why = shortened(f"{type(error).__name__}: {error}", 256)
    condition = ObjectCondition(
        type=CONDITION,
        status="False",
        reason=REASON,
        last_transition_time=previous.last_transition_time
        if previous
        else now.replace(microsecond=0),
        message=f"slurm-bridge failed to process this SlurmJob, which is a bug ({why}). Report it; slurm-bridge keeps retrying",
        observed_generation=job.metadata.generation,
    )
    status = msgspec.structs.replace(before, conditions=(*others, condition))
    actions = () if status == before else (Report(status=status),)
    return JobDecision(actions=actions, reason=REASON)
