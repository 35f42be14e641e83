"""slurmrestd's JSON of a SlurmJob's job → domain values."""

import json
from typing import Any

import msgspec
import pytest

from bridge.domain.model import batch
from bridge.domain.model.batch import ArrayTally, BatchJob, BatchMark
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm.batch_jobs import decoding
from bridge.slurm.decode import ForeignJob
from slurmruntime.slurm import wire
from slurmruntime.values.ids import ClusterId, JobId, WorkloadKey

MARK = BatchMark(
    cluster=ClusterId("east"), namespace="physics", name="train", key=WorkloadKey("5b"), attempt=1
)


def number(value: float) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


def code(value: int, signal: int = 0) -> dict[str, object]:
    return {"return_code": number(value), "signal": {"id": number(signal)}}


def record(**changes: Any) -> dict[str, Any]:
    return {
        "job_id": 7,
        "job_state": ["RUNNING"],
        "step_id": {"sluid": "sAVSM7YPWFKK00"},
        "flags": ["CRON_JOB"],
        "admin_comment": batch.encode(MARK),
        "state_reason": "None",
        "priority": number(1),
        "submit_time": number(1_795_253_000),
        "start_time": number(1_795_253_223),
        "nodes": "gpu[1-2]",
        "batch_host": "gpu1",
        "restart_cnt": 1,
        **changes,
    }


def read(*records: dict[str, Any]) -> BatchJob | ForeignJob:
    return decoding.job(JobId(7), [json.dumps(each).encode() for each in records])


def batch_job(*records: dict[str, Any]) -> BatchJob:
    found = read(*records)
    assert isinstance(found, BatchJob)
    return found


def test_a_running_job_has_its_mark_nodes_and_times() -> None:
    job = batch_job(record())

    assert (JobPhase.RUNNING, MARK, "gpu[1-2]", "gpu1", 1, "RUNNING") == (
        job.phase,
        job.mark,
        job.nodes,
        job.batch_host,
        job.restarts,
        job.state,
    )
    assert job.started_at is not None
    assert job.array is None
    assert not job.is_over


@pytest.mark.parametrize(
    ("states", "phase", "is_over"),
    [
        (["PENDING"], JobPhase.WAITING, False),
        (["RUNNING", "CONFIGURING"], JobPhase.WAITING, False),
        (["SUSPENDED"], JobPhase.PAUSED, False),
        (["COMPLETED", "COMPLETING"], JobPhase.ENDED, False),
        (["COMPLETED"], JobPhase.ENDED, True),
        (["NODE_FAIL", "COMPLETING", "REQUEUED"], JobPhase.WAITING, False),
        (["PENDING", "REQUEUE_HOLD"], JobPhase.WAITING, False),
        (["FAILED", "SPECIAL_EXIT"], JobPhase.WAITING, False),
    ],
)
def test_an_end_is_final_when_nothing_follows_it(
    states: list[str], phase: JobPhase, *, is_over: bool
) -> None:
    job = batch_job(record(job_state=states))

    assert (phase, is_over) == (job.phase, job.is_over)


def test_a_failed_job_has_its_code_and_signal() -> None:
    job = batch_job(record(job_state=["FAILED"], exit_code=code(3, 9), derived_exit_code=code(5)))

    assert (JobEnd.FAILED, 3, 9, 5) == (job.end, job.exit_code, job.signal, job.step_exit_code)


@pytest.mark.parametrize("state", ["CANCELLED", "TIMEOUT", "PREEMPTED", "DEADLINE"])
def test_the_signal_by_which_slurm_ended_it_is_not_the_scripts(state: str) -> None:
    job = batch_job(record(job_state=[state], exit_code=code(143, 15)))

    assert (0, 0) == (job.exit_code, job.signal)


def test_a_record_of_an_array_says_which_tasks_it_stands_for() -> None:
    task = {"array_job_id": number(7), "state_reason": "None"}
    one = record(**task, job_id=8, array_task_id=number(1), job_state=["COMPLETED"])
    waiting = batch_job(
        one, record(**task, job_state=["PENDING"], array_task_string="4-9:2%3", nodes="")
    )
    ended = decoding.job(JobId(8), [json.dumps(one).encode()])

    assert (JobId(7), JobId(7), JobPhase.WAITING) == (waiting.id, waiting.array_id, waiting.phase)
    assert {"4:PENDING", "6:PENDING", "8:PENDING"} == waiting.states
    assert isinstance(ended, BatchJob)
    assert (JobId(8), JobId(7)) == (ended.id, ended.array_id)
    assert {"1:COMPLETED"} == ended.states


@pytest.mark.parametrize("comment", ["", '{"slurm-job":1', '{"slurm-job2":1}'])
def test_without_a_mark_it_is_a_strangers(comment: str) -> None:
    found = read(record(admin_comment=comment))

    assert isinstance(found, ForeignJob)
    assert "" == found.unreadable


def test_what_cannot_be_understood_is_set_aside_with_whose_it_is() -> None:
    newer = batch.encode(MARK).replace('"slurm-job":1', '"slurm-job":2')

    for odd in (record(admin_comment=newer), record(job_state=["DREAMING"])):
        found = read(odd)
        assert isinstance(found, ForeignJob)
        assert found.unreadable
        assert (MARK.cluster, MARK.key) == (found.cluster, found.workload)


def accounted(**changes: Any) -> wire.BatchAccountingRecord:
    plain = {
        "job_id": 7,
        "sluid": "sAVSM7YPWFKK00",
        "state": {"current": ["COMPLETED"]},
        "time": {"submission": 1_795_253_000, "start": 1_795_253_100, "end": 1_795_253_200},
        "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
        "user": "alice",
    }
    return msgspec.convert({**plain, **changes}, wire.BatchAccountingRecord)


def test_a_purged_job_is_told_by_its_record_as_if_slurm_still_knew_it() -> None:
    failed = accounted(state={"current": ["FAILED"]}, exit_code=code(3))

    job = decoding.accounted([failed], MARK)

    assert job is not None
    assert job.is_over
    assert (JobEnd.FAILED, 3, "alice", None) == (job.end, job.exit_code, job.user, job.array)
    assert job.ended_at is not None


@pytest.mark.parametrize(
    "unfinished", [{"state": {"current": ["RUNNING"]}}, {"time": {"start": 1, "end": 0}}]
)
def test_a_record_without_an_end_says_nothing_of_it(unfinished: dict[str, Any]) -> None:
    assert decoding.accounted([accounted(**unfinished)], MARK) is None
    assert decoding.accounted([accounted(), accounted(job_id=8, **unfinished)], MARK) is None


def test_a_job_that_was_requeued_is_told_by_its_last_run() -> None:
    first = {"submission": 1_795_252_000, "start": 1_795_252_100, "end": 1_795_252_900}
    runs = [accounted(), accounted(state={"current": ["NODE_FAIL"]}, time=first)]

    for records in (runs, runs[::-1]):
        job = decoding.accounted(records, MARK)
        assert job is not None
        assert JobEnd.COMPLETED is job.end


def test_an_array_is_told_by_all_of_its_records() -> None:
    records = [
        accounted(job_id=8, array={"job_id": 7, "task_id": number(0)}),
        accounted(
            job_id=9,
            array={"job_id": 7, "task_id": number(1)},
            state={"current": ["FAILED"]},
            exit_code=code(2),
        ),
        accounted(
            job_id=7,
            array={"job_id": 7, "task_id": number(0), "task": "2-3"},
            state={"current": ["CANCELLED"]},
        ),
    ]

    job = decoding.accounted(records, MARK)

    assert job is not None
    tally = ArrayTally(succeeded=1, failed=(1, 2, 3), is_record=True)
    assert (JobId(7), tally) == (job.id, job.array)
