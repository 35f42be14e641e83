"""What the status of a SlurmJob says, made from what is known of its job; bounded in every part."""

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
from slurmruntime.values.faults import shortened

_LONGEST_CONDITION = 512
"""Bytes of a condition's message; the status itself has room for all of it."""
_LONGEST_FAILED = 1000
_MOST_FAILED = 500
"""Failed tasks that are named."""
_CUT = "…"

CONDITIONS = ("Submitted", "Running", "Suspended", "ResultsCollected", "Complete", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatus:
    """What is to be said."""

    phase: JobPhase
    reason: str
    message: str
    job: BatchJob | None = None
    """None leaves what is said of the job as it is, unless the attempt is another one."""
    attempt: int
    conditions: Mapping[str, str] = field(default_factory=dict)
    """The conditions that hold, and the reason of each."""
    results: JobResults | None = None


def status(facts: JobFacts, policy: JobPolicy, said: NewStatus) -> SlurmJobStatus:
    """Return the status that says this; the one that is there if it says so already."""
    before = facts.job.status
    base = before if said.attempt == before.attempt else SlurmJobStatus()
    message = shortened(said.message, LONGEST_MESSAGE)
    told = msgspec.structs.replace(
        base if said.job is None else _of_job(base, said.job, policy),
        phase=said.phase,
        reason=shortened(said.reason, 256),
        message=message,
        attempt=said.attempt,
        results=said.results,
        observed_generation=facts.job.metadata.generation,
        conditions=tuple(_conditions(facts, said, message)),
    )
    return before if told == before else told


def _of_job(before: SlurmJobStatus, job: BatchJob, policy: JobPolicy) -> SlurmJobStatus:
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


def _failed(told: ArrayTasks, tally: ArrayTally) -> Sequence[int]:
    """Return the tasks that failed, with those that Slurm has forgotten and the status has not.

    Slurm forgets a task minutes after its end, and a new process knows only what Slurm knows. While
    all tasks are known, a task that was requeued and ended well has not failed.
    """
    if tally.is_record or tally.total >= told.total:
        return tally.failed
    return sorted({*_named(told), *tally.failed})


def _named(told: ArrayTasks) -> Iterable[int]:
    """Return the tasks that a status names as failed; one that names not all may end within a number."""
    text = told.failed_tasks
    whole = text.rpartition(",")[0] if text.endswith(_CUT) else text
    found = re.findall(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", whole)
    ranges = (range(int(first), int(last or first) + 1) for first, last in found)
    return itertools.islice(itertools.chain.from_iterable(ranges), told.failed)


def _count(told: ArrayTasks, tally: ArrayTally, named: Sequence[int]) -> int:
    """Count those that failed: some of them may be named nowhere any more.

    Names are in order. So a task before the last one that was named is a new failure if it was not
    named; one behind it may have been counted already.
    """
    before = set(_named(told))
    last = max(before, default=-1)
    new = sum(number < last and number not in before for number in tally.failed)
    return max(len(named), told.failed + new)


def array_tasks(tally: ArrayTally, before: ArrayTasks | None) -> ArrayTasks:
    """Return how an array's tasks stand, with those that Slurm has forgotten.

    Args:
        tally: what Slurm still knows, or slurmdbd.
        before: what was last told. Slurm forgets tasks in the order in which they ended. So where
            more have vanished than had been told of, those that had are among them, and of the
            others nobody saw the end.
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


def _conditions(facts: JobFacts, said: NewStatus, message: str) -> Iterator[ObjectCondition]:
    """Yield each condition that holds, or has held; others are left out."""
    before = {condition.type: condition for condition in facts.job.status.conditions}
    for kind in CONDITIONS:
        holds = kind in said.conditions
        if not holds and kind not in before and kind != "Submitted":
            continue
        word: Literal["True", "False"] = "True" if holds else "False"
        reason = condition_reason(said.conditions.get(kind, "") or said.reason or said.phase)
        was = before.get(kind)
        since = was.last_transition_time if was and was.status == word else facts.now
        yield ObjectCondition(
            type=kind,
            status=word,
            reason=reason,
            last_transition_time=since.replace(microsecond=0),
            message=shortened(message, _LONGEST_CONDITION),
            observed_generation=facts.job.metadata.generation,
        )
