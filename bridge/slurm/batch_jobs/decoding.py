"""Translate slurmrestd's and slurmdbd's records of a SlurmJob's job into domain values."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from bridge.domain.model import batch, identities
from bridge.domain.model.batch import BATCH_MARK, ArrayTally, BatchJob, BatchMark
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm import decode
from bridge.slurm.decode import EXTERNAL_JOB, ForeignJob
from slurmclient.errors import Malformed
from slurmclient.wire import reading
from slurmclient.wire.reading import Unreadable
from slurmruntime.slurm import wire
from slurmruntime.values.ids import JobId, Sluid

_REQUEUED: Final = frozenset({"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
"""Slurm runs the job again, with the same id: whatever its base state, it has not ended."""

_MOST_TASKS: Final = 4_000_001
"""MAX_ARRAY_SIZE of slurmctld."""


_ENDED_BY_SLURM: Final = frozenset(
    {JobEnd.CANCELLED, JobEnd.TIMEOUT, JobEnd.PREEMPTED, JobEnd.DEADLINE}
)
"""After these, slurmctld may report the signal that it sent itself, which slurmdbd never gets: sacct shows 0:0."""


_NO_NODES: Final = "None assigned"
"""slurmdbd's text for a job that never had nodes."""


def is_marked(wired: wire.Job) -> bool:
    """Check whether a job may be a SlurmJob's; a placeholder never is."""
    return EXTERNAL_JOB not in wired.flags and f'"{BATCH_MARK}"' in wired.admin_comment


def foreign(wired: wire.Job | wire.BatchRecord) -> ForeignJob:
    """Return the job as it is for readers of placeholders: a foreign one."""
    sluid = Sluid(wired.step_id.sluid) if wired.step_id.sluid else None
    return ForeignJob(id=JobId(wired.job_id), sluid=sluid)


def job(id_: JobId, records: Sequence[bytes]) -> BatchJob | ForeignJob:
    """Reduce a job's record to what decisions need; distinguish a SlurmJob's job from a foreign one.

    For an array, this takes the record with this id: that of its waiting tasks, or of one task.

    Args:
        id_: the job.
        records: those in the answer; for an array's id, Slurm returns the records of all tasks.

    Raises:
        Malformed: the record cannot be read at all, or is missing.
    """
    read = (_record(id_, raw) for raw in records)
    own = next((record for record in read if record.job_id == id_), None)
    if own is None:
        raise Malformed("job.get", f"the response does not contain job {id_}")
    foreign_job = foreign(own)
    try:
        mark = batch.decode(own.admin_comment)
    except identities.UnreadableIdentityError as error:
        cluster, key = error.cluster, error.workload
        return replace(foreign_job, unreadable=str(error), cluster=cluster, workload=key)
    if mark is None:
        return foreign_job
    try:
        return _job(foreign_job, own, phase_of(frozenset(own.job_state)), mark=mark)
    except ValueError as error:
        cluster, key = mark.cluster, mark.key
        return replace(foreign_job, unreadable=str(error), cluster=cluster, workload=key)


def array_of(raw: bytes) -> JobId | None:
    """Return the array that a record belongs to; None if it belongs to none, or does not say."""
    read = reading.lenient(raw, wire.ArrayRecord)
    number = None if isinstance(read, Unreadable) else read.value.array_job_id.positive
    return JobId(number) if number else None


def accounted(records: Sequence[wire.BatchAccountingRecord], mark: BatchMark) -> BatchJob | None:
    """Return a job that has ended from slurmdbd's records of it: one, or one for each array task.

    A job that was requeued has one record for each run; the last counts.
    None if a record has no end: slurmdbd does not know yet, or never will, how the job ended.

    Raises:
        ValueError: a record has no known base state.
    """
    in_order = sorted(records, key=lambda record: (record.time.submission, record.time.start))
    records = list({record.job_id: record for record in in_order}.values())
    first = min(records, key=lambda record: record.job_id)
    ends = [decode.end_of(frozenset(record.state.current)) for record in records]
    if not all(ends) or not all(record.time.end for record in records):
        return None
    codes = [_code(record.exit_code) for record in records]
    return BatchJob(
        id=JobId(first.array.job_id or first.job_id),
        sluid=Sluid(first.sluid) if first.sluid else None,
        phase=JobPhase.ENDED,
        mark=mark,
        state=",".join(first.state.current),
        end=next((end for end in ends if end is not JobEnd.COMPLETED), JobEnd.COMPLETED),
        exit_code=max(code for code, _ in codes),
        signal=max(signal for _, signal in codes),
        step_exit_code=max(_code(record.derived_exit_code)[0] for record in records),
        restarts=max(record.restart_cnt for record in records),
        user=first.user,
        account=first.account,
        partition=first.partition,
        qos=first.qos,
        nodes="" if first.nodes == _NO_NODES else first.nodes,
        directory=first.working_directory,
        stdout=first.stdout_expanded,
        stderr=first.stderr_expanded,
        submitted_at=decode.unix_moment(first.time.submission),
        started_at=decode.unix_moment(first.time.start),
        ended_at=decode.unix_moment(max(record.time.end for record in records)),
        array=_accounted_tasks(records, ends) if first.array.job_id else None,
    )


def _accounted_tasks(
    records: Sequence[wire.BatchAccountingRecord], ends: Sequence[JobEnd | None]
) -> ArrayTally:
    succeeded, failed = 0, set[int]()
    for record, end in zip(records, ends, strict=True):
        if end is JobEnd.COMPLETED:
            succeeded += 1
        else:
            failed |= set(task_numbers(record.array.task)) or {int(record.array.task_id.number)}
    return ArrayTally(succeeded=succeeded, failed=tuple(sorted(failed)), is_record=True)


def phase_of(states: frozenset[str]) -> JobPhase:
    """Return the phase of a batch job for a base state and its flags.

    Raises ValueError if there is no known base state among them.
    """
    return JobPhase.WAITING if states & _REQUEUED else decode.phase_of(states)


def _record(id_: JobId, raw: bytes) -> wire.BatchRecord:
    read = reading.lenient(raw, wire.BatchRecord)
    if isinstance(read, Unreadable):
        raise Malformed("job.get", f"job {id_}: {read.why}")
    return read.value


def _job(
    named: ForeignJob, record: wire.BatchRecord, phase: JobPhase, *, mark: BatchMark
) -> BatchJob:
    states, array_id = frozenset(record.job_state), record.array_job_id.positive
    is_waiting, is_ended = phase is JobPhase.WAITING, phase is JobPhase.ENDED
    end = decode.end_of(states) if is_ended else None
    exit_code, signal = (0, 0) if end in _ENDED_BY_SLURM else _code(record.exit_code)
    return BatchJob(
        id=named.id,
        sluid=named.sluid,
        phase=phase,
        mark=mark,
        states=_of_tasks(record, states) if array_id else states,
        state=",".join(record.job_state),
        remains=is_ended and "COMPLETING" in states,
        end=end,
        exit_code=exit_code if is_ended else 0,
        signal=signal if is_ended else 0,
        step_exit_code=_code(record.derived_exit_code)[0],
        reason="" if record.state_reason == "None" else record.state_reason,
        reason_text=record.state_description,
        held=is_waiting and record.priority.set and record.priority.number == 0,
        restarts=record.restart_cnt,
        user=record.user_name,
        uid=record.user_id,
        gid=record.group_id,
        account=record.account,
        partition=record.partition,
        qos=record.qos,
        nodes=record.nodes,
        batch_host=record.batch_host,
        directory=record.current_working_directory,
        stdout=record.stdout_expanded,
        stderr=record.stderr_expanded,
        submitted_at=decode.moment(record.submit_time),
        started_at=None if is_waiting else decode.moment(record.start_time),
        ended_at=decode.moment(record.end_time) if is_ended else None,
        expected_start=decode.moment(record.start_time) if is_waiting else None,
        array_id=JobId(array_id) if array_id else None,
    )


def _of_tasks(record: wire.BatchRecord, states: frozenset[str]) -> frozenset[str]:
    """Return the states as Slurm's list has them. `array_task_string` may be cut off, so the list is better."""
    task = record.array_task_id
    tasks = [int(task.number)] if task.set else task_numbers(record.array_task_string)
    return frozenset(f"{number}:{state}" for number in tasks for state in states)


def _code(wired: wire.ExitCode) -> tuple[int, int]:
    return wired.return_code.positive or 0, wired.signal.id.positive or 0


def task_numbers(text: str) -> Iterator[int]:
    """Yield the numbers of `1,3-7:2%4`, as many as an array may have; parts that cannot be read yield none."""
    numbers = itertools.chain.from_iterable(_task_ranges(text))
    return itertools.islice(numbers, _MOST_TASKS)


def _task_ranges(text: str) -> Iterator[range]:
    for part in re.split(r"[,\[\]]", text.partition("%")[0]):
        match = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?", part)
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            yield range(first, min(last + 1, _MOST_TASKS), max(step, 1))
