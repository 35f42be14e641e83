"""Compute the status of a SlurmJob from what is known about its job; every part is bounded."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import msgspec

from bridge.domain.lifecycle.reasons import condition_reason
from bridge.domain.model.batch import ArrayTally, BatchJob
from slurmjobs.lifecycle.situation import JobFacts, JobPolicy
from slurmjobs.objects.results import JobResults
from slurmjobs.objects.status import LONGEST_NODES, ArrayTasks, JobOutputs, JobPhase, SlurmJobStatus
from slurmruntime.crd.conditions import LONGEST_MESSAGE, ObjectCondition
from slurmruntime.values import hostlist
from slurmruntime.values.faults import published, shortened

_LONGEST_CONDITION = 512
"""Bytes of a condition's message; the status's own message may be longer."""
_LONGEST_FAILED = 1000
_MOST_FAILED = 500
_CUT = "…"

CONDITIONS = ("Submitted", "Running", "Suspended", "ResultsCollected", "Complete", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatus:
    """What the new status must say."""

    phase: JobPhase
    reason: str
    message: str
    job: BatchJob | None = None
    """None keeps the fields about the job, unless the attempt is another one."""
    attempt: int
    conditions: Mapping[str, str] = field(default_factory=dict)
    """The conditions that are true, with their reasons."""
    results: JobResults | None = None


def status(facts: JobFacts, policy: JobPolicy, new: NewStatus) -> SlurmJobStatus:
    """Return the new status; the present object if nothing changes."""
    before = facts.job.status
    base = before if new.attempt == before.attempt else SlurmJobStatus()
    message = published(new.message, LONGEST_MESSAGE)
    updated = msgspec.structs.replace(
        base if new.job is None else _job_fields(base, new.job, policy),
        phase=new.phase,
        reason=published(new.reason, 256),
        message=message,
        attempt=new.attempt,
        results=new.results,
        observed_generation=facts.job.metadata.generation,
        conditions=tuple(_conditions(facts, new, message)),
    )
    return before if updated == before else updated


def _job_fields(before: SlurmJobStatus, job: BatchJob, policy: JobPolicy) -> SlurmJobStatus:
    ran = job.end is not None and not job.is_impossible
    return SlurmJobStatus(
        job_id=job.id,
        sluid=shortened(job.sluid or "", 64) or (before.sluid if before.job_id == job.id else ""),
        state=shortened(job.state, 256) or before.state or "PENDING",
        user=shortened(job.user, 256) or before.user,
        uid=before.uid if job.uid is None else job.uid,
        gid=before.gid if job.gid is None else job.gid,
        account=shortened(job.account, 256) or before.account,
        partition=shortened(job.partition, 1024) or before.partition,
        qos=shortened(job.qos, 256) or before.qos,
        nodes=shortened(job.nodes, LONGEST_NODES),
        batch_host=shortened(job.batch_host, 256),
        exit_code=min(job.exit_code, 255) if ran else None,
        signal=min(job.signal, 255) if ran and job.signal else None,
        submit_time=job.submitted_at or before.submit_time,
        expected_start=_expected(before.expected_start, job.expected_start, policy),
        start_time=None if job.is_impossible else job.started_at,
        end_time=job.ended_at,
        restarts=job.restarts,
        array=None if job.array is None else array_tasks(job.array, before.array),
        outputs=None
        if job.is_impossible
        else JobOutputs(
            stdout=shortened(job.stdout),
            stderr=shortened(job.stderr),
            directory=shortened(job.directory),
        )
        if job.stdout or job.stderr or job.directory
        else before.outputs,
    )


def _expected(before: datetime | None, now: datetime | None, policy: JobPolicy) -> datetime | None:
    if before is not None and now is not None and abs(now - before) < policy.start_step:
        return before
    return now


def _failed(before: ArrayTasks, tally: ArrayTally) -> Sequence[int]:
    """Return the failed tasks, including those that Slurm has forgotten and the status still names.

    Slurm forgets a task minutes after its end, and a new process knows only what Slurm knows. While
    all tasks are known, a task that was requeued and ended well has not failed.
    """
    if tally.is_record or tally.total >= before.total:
        return tally.failed
    return sorted({*_named(before), *tally.failed})


def _named(reported: ArrayTasks) -> Iterable[int]:
    """Return the tasks that a status names as failed; a list that was cut off may end within a number."""
    text = reported.failed_tasks
    complete = text.rpartition(",")[0] if text.endswith(_CUT) else text
    matches = re.findall(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", complete)
    ranges = (range(int(first), int(last or first) + 1) for first, last in matches)
    return itertools.islice(itertools.chain.from_iterable(ranges), reported.failed)


def _count(reported: ArrayTasks, tally: ArrayTally, named: Sequence[int]) -> int:
    """Count the failed tasks, some of which may no longer be named anywhere.

    Names are in order. So an unnamed task before the last named one is a new failure, while one
    behind it may have been counted already.
    """
    named_before = set(_named(reported))
    last = max(named_before, default=-1)
    new = sum(number < last and number not in named_before for number in tally.failed)
    return max(len(named), reported.failed + new)


def array_tasks(tally: ArrayTally, before: ArrayTasks | None) -> ArrayTasks:
    """Count an array's tasks by state, including those that Slurm has forgotten.

    Args:
        tally: what Slurm still knows, or slurmdbd's record.
        before: what was last reported. Slurm forgets tasks in the order in which they ended. So if
            more have vanished than were reported as ended, the reported ones are among them, and
            the ends of the others were never seen.
    """
    before = before or ArrayTasks()
    named = _failed(before, tally)
    total = max(tally.total, before.total)
    ended = total - tally.waiting - tally.running
    if tally.is_record:
        failed, unknown = ended - tally.succeeded, 0
    elif tally.total == total:
        failed, unknown = len(tally.failed), tally.unknown
    else:
        failed = _count(before, tally, named)
        forgotten = ended - failed - tally.succeeded - tally.unknown
        unknown = max(before.unknown, tally.unknown + max(forgotten - before.succeeded, 0))
    shown = named[:_MOST_FAILED]
    numbers = hostlist.compress([f"t{number}" for number in shown])
    numbers = numbers.removeprefix("t").removeprefix("[").removesuffix("]")
    cut = [_CUT] if failed > len(shown) else []
    return ArrayTasks(
        total=total,
        pending=tally.waiting,
        running=tally.running,
        succeeded=max(ended - failed - unknown, 0),
        failed=failed,
        unknown=unknown,
        failed_tasks=shortened(",".join(filter(None, [numbers, *cut])), _LONGEST_FAILED),
    )


def _conditions(facts: JobFacts, new: NewStatus, message: str) -> Iterator[ObjectCondition]:
    """Yield each condition that is or was true, and Submitted; others are left out."""
    before = {condition.type: condition for condition in facts.job.status.conditions}
    for kind in CONDITIONS:
        holds = kind in new.conditions
        if not holds and kind not in before and kind != "Submitted":
            continue
        value: Literal["True", "False"] = "True" if holds else "False"
        reason = condition_reason(new.conditions.get(kind, "") or new.reason or new.phase)
        previous = before.get(kind)
        since = (
            previous.last_transition_time if previous and previous.status == value else facts.now
        )
        yield ObjectCondition(
            type=kind,
            status=value,
            reason=reason,
            last_transition_time=since.replace(microsecond=0),
            message=published(message, _LONGEST_CONDITION),
            observed_generation=facts.job.metadata.generation,
        )
