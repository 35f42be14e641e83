"""What the status of a SlurmJob says, made from what is known of its job; bounded in every part."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import msgspec

from bridge.crd.conditions import LONGEST_MESSAGE, ObjectCondition
from bridge.domain import hostlist
from bridge.domain.faults import shortened
from bridge.domain.lifecycle.reasons import condition_reason
from bridge.domain.model.batch import ArrayTally, BatchJob
from jobs.lifecycle.situation import JobFacts, JobPolicy
from jobs.objects.status import (
    LONGEST_NODES,
    ArrayTasks,
    JobOutputs,
    JobPhase,
    SlurmJobStatus,
)

_LONGEST_CONDITION = 512
"""Bytes of a condition's message; the status itself has room for all of it."""
_LONGEST_FAILED = 1000
_MOST_FAILED = 500
"""Failed tasks that are named."""
_CUT = "…"

CONDITIONS = ("Submitted", "Running", "Suspended", "Complete", "Failed")


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
        observed_generation=facts.job.metadata.generation,
        conditions=tuple(_conditions(facts, said, message)),
    )
    return before if told == before else told


def _of_job(before: SlurmJobStatus, job: BatchJob, policy: JobPolicy) -> SlurmJobStatus:
    ended = job.end is not None
    return SlurmJobStatus(
        job_id=job.id,
        sluid=shortened(job.sluid or "", 64) or (before.sluid if before.job_id == job.id else ""),
        state=shortened(job.state, 256) or before.state or "PENDING",
        user=shortened(job.user, 256) or before.user,
        account=shortened(job.account, 256) or before.account,
        partition=shortened(job.partition, 1024) or before.partition,
        qos=shortened(job.qos, 256) or before.qos,
        nodes=shortened(job.nodes, LONGEST_NODES),
        batch_host=shortened(job.batch_host, 256),
        exit_code=min(job.exit_code, 255) if ended else None,
        signal=min(job.signal, 255) if ended and job.signal else None,
        submit_time=job.submitted_at or before.submit_time,
        expected_start=_expected(before.expected_start, job.expected_start, policy),
        start_time=job.started_at,
        end_time=job.ended_at,
        restarts=job.restarts,
        array=_array(job.array, before.array),
        outputs=JobOutputs(stdout=shortened(job.stdout), stderr=shortened(job.stderr))
        if job.stdout or job.stderr
        else before.outputs,
    )


def _expected(before: datetime | None, now: datetime | None, policy: JobPolicy) -> datetime | None:
    if before is not None and now is not None and abs(now - before) < policy.start_step:
        return before
    return now


def failed_tasks(told: ArrayTasks | None, tally: ArrayTally) -> tuple[int, ...]:
    """Return the tasks that failed, with those that Slurm has forgotten and the status has not.

    Slurm forgets a task minutes after its end, and a new process knows only what Slurm knows. While
    all tasks are known, a task that was requeued and ended well has not failed. A status that names
    not all of them may end within a number.
    """
    if told is None or tally.total >= told.total:
        return tally.failed
    text = told.failed_tasks
    whole = text.rpartition(",")[0] if text.endswith(_CUT) else text
    named = re.findall(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", whole)
    ranges = (range(int(first), int(last or first) + 1) for first, last in named)
    before = itertools.islice(itertools.chain.from_iterable(ranges), told.failed)
    return tuple(sorted({*before, *tally.failed}))


def _array(tally: ArrayTally | None, before: ArrayTasks | None) -> ArrayTasks | None:
    if tally is None:
        return None
    failed = failed_tasks(before, tally)
    total = max(tally.total, before.total if before else 0)
    # Some that failed may be named nowhere any more.
    count = max(len(failed), before.failed if before and tally.total < total else 0)
    forgotten = total - tally.waiting - tally.running - count - tally.succeeded
    named = failed[:_MOST_FAILED]
    numbers = hostlist.compress([f"t{number}" for number in named])
    numbers = numbers.removeprefix("t").removeprefix("[").removesuffix("]")
    cut = [_CUT] if count > len(named) else []
    return ArrayTasks(
        total=total,
        pending=tally.waiting,
        running=tally.running,
        succeeded=tally.succeeded + max(forgotten, 0),
        failed=count,
        failed_tasks=shortened(",".join(filter(None, [numbers, *cut])), _LONGEST_FAILED),
    )


def _conditions(facts: JobFacts, said: NewStatus, message: str) -> Iterator[ObjectCondition]:
    """Yield each condition that holds, or has held; others are left out."""
    before = {each.type: each for each in facts.job.status.conditions}
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
