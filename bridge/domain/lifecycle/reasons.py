"""What a pod reports about its placeholder: why it waits and how it ended, for Kubernetes users."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import assert_never

from bridge.domain.lifecycle import waiting_reasons
from bridge.domain.lifecycle.actions import Cause
from bridge.domain.lifecycle.waiting_reasons import NOT_LOOKED_AT
from bridge.domain.model.jobs import JobEnd, OwnJob, SlurmJob

_ENDS: Mapping[JobEnd, str] = MappingProxyType(
    {
        JobEnd.COMPLETED: "was completed by someone else",
        JobEnd.FAILED: "failed in Slurm",
        JobEnd.CANCELLED: "was cancelled in Slurm",
        JobEnd.TIMEOUT: "reached its time limit",
        JobEnd.PREEMPTED: "was preempted by a job with a higher priority",
        JobEnd.NODE_FAIL: "was ended as NODE_FAIL: its node failed or was set DOWN, or "
        "its partition, or a node that it names, has left Slurm",
        JobEnd.OUT_OF_MEMORY: "ran out of memory",
        JobEnd.DEADLINE: "could not finish before its deadline",
        JobEnd.BOOT_FAIL: "ended because its node did not boot",
    }
)

_LONGEST_REASON = 1024
"""Characters; Slurm's own names have at most forty, and Kubernetes takes no longer reason."""
_FAR = timedelta(hours=1)
_NEAR_STEP = timedelta(minutes=5)


def condition_reason(slurm_reason: str) -> str:
    """Convert a state reason to a condition's reason.

    CamelCase, letters, digits and underscores, a letter first. The part after a comma holds details
    (`ReqNodeNotAvail, UnavailableNodes:n[1-9]`), which would change all the time.
    """
    words = re.findall(r"[A-Za-z0-9_]+", slurm_reason[:_LONGEST_REASON].partition(",")[0])
    reason = "".join(word[0].upper() + word[1:] for word in words)
    if reason in ("", "None", "Null"):
        return NOT_LOOKED_AT
    return reason if reason[0].isalpha() else f"Slurm{reason}"


def why_it_waits(job: OwnJob, now: datetime) -> str:
    """Explain why this job waits, when it may start and what can be done about it.

    The expected start is rounded, so that the sentence does not change with every pass of Slurm's
    scheduler.
    """
    reason = condition_reason(job.reason)
    explanation = waiting_reasons.explain(reason)
    text = explanation.words if explanation else reason
    name = "" if reason == NOT_LOOKED_AT else f" ({job.reason})"
    start = ""
    if job.expected_start is not None and job.expected_start > now:
        start = f"; expected start about {_rounded(job.expected_start, now):%Y-%m-%d %H:%M} UTC"
    step = f"; {explanation.next_step}" if explanation and explanation.next_step else ""
    return f"Slurm job {job.id} waits: {text}{name}{says(job.reason_text)}{start}{step}"


def how_it_ended(job: SlurmJob) -> str:
    """Explain how this placeholder ended."""
    end = _ENDS[job.end] if job.end is not None else "ended"
    return f"Slurm job {job.id} {end}{says(job.reason_text)}"


def why_impossible(job: OwnJob) -> str:
    """Explain why Slurm ended a job that never had a node, and what can be done about it."""
    reason = condition_reason(job.reason)
    explanation = waiting_reasons.explain(reason) if reason != NOT_LOOKED_AT else None
    text = explanation.words if explanation else "Slurm gives no reason"
    name = f" ({job.reason})" if job.reason else ""
    step = f"; {explanation.next_step}" if explanation and explanation.next_step else ""
    return f"Slurm job {job.id} could never run, and Slurm ended it: {text}{name}{says(job.reason_text)}{step}"


def cause_of(end: JobEnd) -> Cause:
    """Return why the pods must go when their placeholder ended in this way."""
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


def says(text: str) -> str:
    """Repeat what Slurm adds to a state or reason, to follow it in a sentence; "" if nothing."""
    return f", Slurm says: {text}" if text else ""


def _rounded(moment: datetime, now: datetime) -> datetime:
    """Round up to five minutes, or to the hour if it is more than an hour away."""
    step = _NEAR_STEP if moment - now < _FAR else _FAR
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch - (epoch - moment) // step * step
