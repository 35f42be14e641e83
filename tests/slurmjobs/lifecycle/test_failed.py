"""What a SlurmJob is told when looking at it fails."""

import msgspec

from slurmjobs.lifecycle import failed
from slurmjobs.lifecycle.actions import Report
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from tests.slurmjobs.lifecycle.situations import NOW, slurm_job

ERROR = ValueError("Exceeds the limit (4300 digits) for integer string conversion")


def told(job: SlurmJobObject) -> SlurmJobStatus:
    (action,) = failed.decision(job, ERROR, NOW).actions
    assert isinstance(action, Report)
    return action.status


def test_it_is_a_condition_beside_what_was_known() -> None:
    before = SlurmJobStatus(phase="Running", job_id=7, reason="Running")
    after = told(slurm_job(status=before))

    (condition,) = after.conditions
    assert ("Reconciled", "False", "ReconcileFailed") == (
        condition.type,
        condition.status,
        condition.reason,
    )
    assert "ValueError: Exceeds the limit" in condition.message
    assert before == msgspec.structs.replace(after, conditions=())


def test_it_is_written_once() -> None:
    job = slurm_job()
    again = slurm_job(status=told(job))

    assert () == failed.decision(again, ERROR, NOW).actions
