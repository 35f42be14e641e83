"""What a SlurmJob is told if looking at it fails for a reason that is our own."""

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
    """Say it once, as a condition beside what was last known; the next ordinary report takes it away."""
    before = job.status
    others = tuple(condition for condition in before.conditions if condition.type != CONDITION)
    was = next((condition for condition in before.conditions if condition.type == CONDITION), None)
    why = shortened(f"{type(error).__name__}: {error}", 256)
    told = ObjectCondition(
        type=CONDITION,
        status="False",
        reason=REASON,
        last_transition_time=was.last_transition_time if was else now.replace(microsecond=0),
        message=f"slurm-bridge failed to look at this SlurmJob, which is a bug ({why}). Report it; it tries again by itself",
        observed_generation=job.metadata.generation,
    )
    status = msgspec.structs.replace(before, conditions=(*others, told))
    actions = () if status == before else (Report(status=status),)
    return JobDecision(actions=actions, reason=REASON)
