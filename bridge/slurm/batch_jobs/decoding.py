"""Translate what slurmrestd and slurmdbd say of a SlurmJob's job into domain values."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bridge.domain.ids import ClusterId, JobId, Sluid, WorkloadKey
from bridge.domain.model import batch, identities
from bridge.domain.model.batch import BATCH_MARK, ArrayTally, BatchJob, BatchMark
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm import decode, wire
from bridge.slurm.decode import EXTERNAL_JOB, Stranger
from bridge.slurm.errors import Malformed
from slurmclient.wire import reading
from slurmclient.wire.reading import Decoded, Unreadable

_REQUEUED: Final = frozenset({"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
"""Slurm runs it again, with the same id: whatever its base state, it has not ended."""

_MOST_TASKS: Final = 4_000_001
"""MAX_ARRAY_SIZE of slurmctld."""

_ORDER: Final = (JobPhase.RUNNING, JobPhase.PAUSED, JobPhase.WAITING, JobPhase.ENDED)
"""What an array is, by the first of these that one of its tasks is."""


def is_marked(read: Decoded[wire.Job]) -> bool:
    """Check whether a job may be a SlurmJob's; a placeholder never is."""
    wired = read.value
    return EXTERNAL_JOB not in wired.flags and f'"{BATCH_MARK}"' in wired.admin_comment


def stranger(read: Decoded[wire.Job]) -> Stranger:
    """Return the job as those see it who look for placeholders."""
    wired = read.value
    sluid = Sluid(wired.step_id.sluid) if wired.step_id.sluid else None
    return Stranger(id=JobId(wired.job_id), sluid=sluid)


def job(ref: JobId | Sluid, records: Sequence[bytes]) -> BatchJob | Stranger:
    """Reduce a job's records to what decisions need; tell a SlurmJob's job from a stranger's.

    Args:
        ref: the job; of an array, the array's id.
        records: the job's record, or those of the tasks of an array, with the array's own.

    Raises:
        Malformed: a record cannot be read at all.
    """
    read = [_record(ref, raw) for raw in records]
    read.sort(key=lambda each: ref not in (each.job_id, each.step_id.sluid))  # its own one first
    own = read[0]
    named = Stranger(
        id=JobId(own.job_id), sluid=Sluid(own.step_id.sluid) if own.step_id.sluid else None
    )
    mark = _mark(named, own.admin_comment)
    if not isinstance(mark, BatchMark):
        return mark
    is_array = bool(own.array_job_id.positive)
    try:
        phases = [phase_of(frozenset(each.job_state)) for each in read]
        tally = _tally(read) if is_array else None
    except ValueError as error:
        return _set_aside(named, str(error), mark.cluster, mark.key)
    return _job(named, read, phases, mark=mark, tally=tally)


def accounted(records: Sequence[wire.BatchAccounted], mark: BatchMark) -> BatchJob | None:
    """Return a job that has ended from slurmdbd's records of it: one, or one for each array task.

    None if one of them has no end: slurmdbd does not know yet, or never will, how it ended.

    Raises:
        ValueError: a record has no known base state.
    """
    first = min(records, key=lambda each: each.job_id)
    ends = [decode.end_of(frozenset(each.state.current)) for each in records]
    if not all(ends) or not all(each.time.end for each in records):
        return None
    codes = [_code(each.exit_code) for each in records]
    return BatchJob(
        id=JobId(first.array.job_id or first.job_id),
        sluid=Sluid(first.sluid) if first.sluid else None,
        phase=JobPhase.ENDED,
        mark=mark,
        state=",".join(first.state.current),
        end=_worst([end for end in ends if end]),
        exit_code=max(code for code, _ in codes),
        signal=max(signal for _, signal in codes),
        step_exit_code=max(_code(each.derived_exit_code)[0] for each in records),
        restarts=max(each.restart_cnt for each in records),
        user=first.user,
        account=first.account,
        partition=first.partition,
        qos=first.qos,
        nodes=first.nodes,
        stdout=first.stdout_expanded,
        stderr=first.stderr_expanded,
        submitted_at=decode.moment(_number(first.time.submission)),
        started_at=decode.moment(_number(first.time.start)),
        ended_at=decode.moment(_number(max(each.time.end for each in records))),
        array=_accounted_tasks(records, ends) if first.array.job_id else None,
    )


def _accounted_tasks(
    records: Sequence[wire.BatchAccounted], ends: Sequence[JobEnd | None]
) -> ArrayTally:
    succeeded, failed = 0, set[int]()
    for each, end in zip(records, ends, strict=True):
        if end is JobEnd.COMPLETED:
            succeeded += 1
        else:
            failed |= set(task_numbers(each.array.task)) or {int(each.array.task_id.number)}
    return ArrayTally(succeeded=succeeded, failed=tuple(sorted(failed)))


def _number(value: int) -> wire.Number:
    return wire.Number(set=True, number=value)


def phase_of(states: frozenset[str]) -> JobPhase:
    """Return the phase of a batch job for a base state and its flags.

    Raises:
        ValueError: there is no known base state among them.
    """
    return JobPhase.WAITING if states & _REQUEUED else decode.phase_of(states)


def _record(ref: JobId | Sluid, raw: bytes) -> wire.BatchRecord:
    read = reading.lenient(raw, wire.BatchRecord)
    if isinstance(read, Unreadable):
        raise Malformed("job.get", f"job {ref}: {read.why}")
    return read.value


def _mark(named: Stranger, comment: str) -> BatchMark | Stranger:
    try:
        return batch.decode(comment) or named
    except identities.UnreadableIdentityError as error:
        return _set_aside(named, str(error), error.cluster, error.workload)


def _set_aside(
    named: Stranger, why: str, cluster: ClusterId | None, key: WorkloadKey | None
) -> Stranger:
    return Stranger(id=named.id, sluid=named.sluid, unreadable=why, cluster=cluster, workload=key)


def _job(
    found: Stranger,
    records: Sequence[wire.BatchRecord],
    phases: Sequence[JobPhase],
    *,
    mark: BatchMark,
    tally: ArrayTally | None,
) -> BatchJob:
    phase = next(each for each in _ORDER if each in phases)
    shown = records[phases.index(phase)]
    states = frozenset(shown.job_state)
    ends = [end for each in records if (end := decode.end_of(frozenset(each.job_state)))]
    codes = [_code(each.exit_code) for each in records]
    is_waiting, is_ended = phase is JobPhase.WAITING, phase is JobPhase.ENDED
    moments = [decode.moment(each.end_time) for each in records] if is_ended else []
    return BatchJob(
        id=found.id,
        sluid=found.sluid,
        phase=phase,
        mark=mark,
        states=states,
        state=",".join(shown.job_state),
        remains=is_ended and any("COMPLETING" in each.job_state for each in records),
        end=_worst(ends) if is_ended else None,
        exit_code=max(code for code, _ in codes) if is_ended else 0,
        signal=max(signal for _, signal in codes) if is_ended else 0,
        step_exit_code=max(_code(each.derived_exit_code)[0] for each in records),
        reason="" if shown.state_reason == "None" else shown.state_reason,
        reason_text=shown.state_description,
        held=is_waiting and shown.priority.set and shown.priority.number == 0,
        restarts=max(each.restart_cnt for each in records),
        user=shown.user_name,
        uid=shown.user_id,
        gid=shown.group_id,
        account=shown.account,
        partition=shown.partition,
        qos=shown.qos,
        nodes=shown.nodes,
        batch_host=shown.batch_host,
        stdout=shown.stdout_expanded,
        stderr=shown.stderr_expanded,
        submitted_at=decode.moment(shown.submit_time),
        started_at=None if is_waiting else decode.moment(shown.start_time),
        ended_at=max(filter(None, moments), default=None),
        expected_start=decode.moment(shown.start_time) if is_waiting else None,
        array=tally,
    )


def _worst(ends: Sequence[JobEnd]) -> JobEnd | None:
    """Return the end of a job; of an array, the first that is not COMPLETED."""
    return next((end for end in ends if end is not JobEnd.COMPLETED), next(iter(ends), None))


def _code(wired: wire.ExitCode) -> tuple[int, int]:
    return wired.return_code.positive or 0, wired.signal.id.positive or 0


def _tally(records: Iterable[wire.BatchRecord]) -> ArrayTally:
    waiting = running = succeeded = 0
    failed: list[int] = []
    for each in records:
        states = frozenset(each.job_state)
        match phase_of(states):
            case JobPhase.WAITING:
                waiting += sum(1 for _ in task_numbers(each.array_task_string)) or 1
            case JobPhase.RUNNING | JobPhase.PAUSED:
                running += 1
            case JobPhase.ENDED if decode.end_of(states) is JobEnd.COMPLETED:
                succeeded += 1
            case JobPhase.ENDED if each.array_task_string:  # cancelled before they had records
                failed.extend(task_numbers(each.array_task_string))
            case _:
                failed.append(int(each.array_task_id.number))
    return ArrayTally(
        waiting=waiting, running=running, succeeded=succeeded, failed=tuple(sorted(failed))
    )


def task_numbers(text: str) -> Iterator[int]:
    """Yield the numbers of `1,3-7:2%4`; what cannot be read yields none."""
    for part in re.split(r"[,\[\]]", text.partition("%")[0]):
        found = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?", part)
        if found:
            first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
            yield from range(first, min(last + 1, _MOST_TASKS), max(step, 1))
