"""Slurm's reasons in words that a user of Kubernetes understands, and its ends as ours.

The list: `man squeue`, JOB REASON CODES. What is not in it is passed on as Slurm says it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import assert_never

from bridge.domain.actions import Cause
from bridge.domain.jobs import JobEnd, SlurmJob

NOT_LOOKED_AT = "WaitingForSlurm"
"""The condition's reason as long as Slurm gives none."""

_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        NOT_LOOKED_AT: "Slurm has not said yet why",
        "AccountNotAllowed": "its account may not use this partition",
        "BadConstraints": "no node can ever satisfy what it asks for",
        "BeginTime": "the begin time it asked for has not come",
        "BurstBufferResources": "the burst buffer has no room for it now",
        "Cleaning": "Slurm is still cleaning up after it",
        "Dependency": "a job it depends on has not ended",
        "DependencyNeverSatisfied": "a job it depends on ended in a way that never lets it start",
        "InactiveLimit": "it reached the inactive limit",
        "InvalidAccount": "its account is not valid in Slurm",
        "InvalidQOS": "its QOS is not valid in Slurm",
        "JobHeldAdmin": "an administrator holds it",
        "JobHeldUser": "its user holds it",
        "JobHoldMaxRequeue": "it was requeued too often and is held",
        "Licenses": "the licenses it asks for are in use",
        "NodeDown": "a node it needs is down",
        "PartitionDown": "its partition is down: it starts nothing until an administrator sets it up again",
        "PartitionInactive": "its partition is inactive: it neither takes nor starts jobs",
        "PartitionNodeLimit": "it asks for more nodes than its partition allows",
        "PartitionTimeLimit": "it asks for more time than its partition allows",
        "Priority": "jobs with a higher priority go first",
        "QOSNotAllowed": "its QOS may not be used in this partition or by this account",
        "ReqNodeNotAvail": "a node it needs is down, drained or reserved",
        "Reservation": "its reservation has not begun or has no room",
        "ReservationDeleted": "its reservation was deleted",
        "Resources": "nothing that it fits on is free",
    }
)

_FAMILIES = (
    ("QOSGrp", "everybody under its QOS together has reached a limit"),
    ("QOSMax", "it or its user has reached a limit of its QOS"),
    ("QOSMin", "it asks for less than its QOS requires"),
    ("QOS", "a limit of its QOS"),
    ("AssocGrp", "its account has reached a limit"),
    ("AssocMax", "it or its user has reached a limit of its account"),
    ("Assoc", "a limit of its account or user"),
    ("MaxMemPerLimit", "it asks for more memory per CPU or node than Slurm allows"),
)

_ENDS: Mapping[JobEnd, str] = MappingProxyType(
    {
        JobEnd.COMPLETED: "was completed by somebody else",
        JobEnd.FAILED: "failed in Slurm",
        JobEnd.CANCELLED: "was cancelled in Slurm",
        JobEnd.TIMEOUT: "reached its time limit",
        JobEnd.PREEMPTED: "was preempted by a job with a higher priority",
        JobEnd.NODE_FAIL: "ended because its node failed in Slurm",
        JobEnd.OUT_OF_MEMORY: "was ended for its use of memory",
        JobEnd.DEADLINE: "could not end before its deadline",
        JobEnd.BOOT_FAIL: "ended because its node did not boot",
    }
)

_FAR = timedelta(hours=1)
_NEAR_STEP = timedelta(minutes=5)


def condition_reason(slurm_reason: str) -> str:
    """Turn a state reason into a condition's reason: CamelCase, letters, digits and underscores, a letter first.

    What follows a comma are details (`ReqNodeNotAvail, UnavailableNodes:n[1-9]`), which would change all the time.
    """
    words = re.findall(r"[A-Za-z0-9_]+", slurm_reason.partition(",")[0])
    reason = "".join(word[0].upper() + word[1:] for word in words)
    if reason in ("", "None", "Null"):
        return NOT_LOOKED_AT
    return reason if reason[0].isalpha() else f"Slurm{reason}"


def why_it_waits(job: SlurmJob, now: datetime) -> str:
    """Say in one sentence why this placeholder waits and when it may start.

    The expected start is rounded, so that the sentence does not change with every pass of Slurm's scheduler.
    """
    reason = condition_reason(job.reason)
    text = explain(reason)
    name = "" if reason == NOT_LOOKED_AT else f" ({job.reason})"
    words = f", Slurm says: {job.reason_text}" if job.reason_text else ""
    start = ""
    if job.expected_start is not None and job.expected_start > now:
        start = f"; expected start about {_rounded(job.expected_start, now):%Y-%m-%d %H:%M} UTC"
    return f"Slurm job {job.id} waits: {text}{name}{words}{start}"


def explain(reason: str) -> str:
    """Explain a reason in plain words; an unknown one explains itself."""
    if text := _TEXTS.get(reason):
        return text
    return next((text for prefix, text in _FAMILIES if reason.startswith(prefix)), reason)


def how_it_ended(job: SlurmJob) -> str:
    """Say in one sentence how this placeholder ended."""
    end = _ENDS[job.end] if job.end is not None else "ended"
    words = f", Slurm says: {job.reason_text}" if job.reason_text else ""
    return f"Slurm job {job.id} {end}{words}"


def cause_of(end: JobEnd) -> Cause:
    """Tell why the pods have to go when their placeholder ended like this."""
    match end:
        case JobEnd.CANCELLED:
            return Cause.CANCELLED
        case JobEnd.PREEMPTED:
            return Cause.PREEMPTED
        case JobEnd.NODE_FAIL | JobEnd.BOOT_FAIL:
            return Cause.NODE_FAIL
        case JobEnd.TIMEOUT:
            return Cause.TIME_LIMIT
        case JobEnd.DEADLINE:
            return Cause.DEADLINE
        case JobEnd.COMPLETED | JobEnd.FAILED | JobEnd.OUT_OF_MEMORY:
            return Cause.ENDED
        case _:
            assert_never(end)


def _rounded(moment: datetime, now: datetime) -> datetime:
    """Round up to five minutes, to the hour where it is far away."""
    step = _NEAR_STEP if moment - now < _FAR else _FAR
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch - (epoch - moment) // step * step
