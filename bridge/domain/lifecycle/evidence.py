"""Decide whether Slurm lost a placeholder that it no longer knows, or whether the job had ended.

*Lost* needs positive evidence, because a job that ended and was purged is absent in the same way.
The evidence, best first: what slurmdbd says about that very job; that slurmctld is about to assign
the job's id, or a lower one, again; that another job has its id.
"""

from dataclasses import dataclass
from datetime import datetime

from bridge.domain.model.jobs import JobEnd
from bridge.domain.observation.view import Evidence
from slurmruntime.values.ids import JobId

_WRAPS_NEAR = 0.1
"""Share of the id range near its ends.

Slurm's ids start over after the last one: an id in the last tenth and a next one in the first tenth
may be just that.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingRecord:
    """What slurmdbd reports about one job."""

    states: frozenset[str]
    started_at: datetime | None
    ended_at: datetime | None
    """None as long as slurmdbd has not received an end."""
    ended_by: str = ""
    """Who cancelled it; "" if nobody did."""
    says_time_limit: bool = True
    """False if slurmdbd never received one: the job has its partition's limit."""
    time_limit_min: int | None = None
    """None means unlimited, if `says_time_limit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """How slurmctld numbers jobs."""

    next_id: JobId
    last_id: JobId
    """After this one, ids start over."""


def verdict(record: AccountingRecord, *, is_up_to_date: bool) -> Evidence:
    """Decide whether slurmctld lost a job that it does not know, or whether the job had ended.

    While slurmdbd is not up to date, a missing end proves nothing: slurmctld keeps what it could
    not send. Two kinds of end do not count as one. `slurmctld -c` drops its state and records every
    job as cancelled, by nobody. And `sacctmgr show runawayjobs` completes jobs that slurmctld does
    not know, in the second in which they started.
    """
    if record.ended_at is None:
        return Evidence.LOST if is_up_to_date else Evidence.PENDING
    if JobEnd.CANCELLED.value in record.states and record.started_at and not record.ended_by:
        return Evidence.LOST
    if JobEnd.COMPLETED.value in record.states and record.ended_at == record.started_at:
        return Evidence.LOST
    if record.states & {JobEnd.NODE_FAIL.value, JobEnd.BOOT_FAIL.value}:
        return Evidence.NODE_FAILED
    return Evidence.ENDED


def went_backwards(job_id: JobId, numbering: Numbering) -> bool:
    """Check whether Slurm is about to assign this id once more: then it has forgotten the job."""
    near = numbering.last_id * _WRAPS_NEAR
    may_have_wrapped = job_id > numbering.last_id - near and numbering.next_id < near
    return numbering.next_id <= job_id and not may_have_wrapped
