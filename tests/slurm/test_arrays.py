"""An array's records → one job, whatever Slurm has forgotten of it."""

from dataclasses import replace

import pytest

from bridge.domain.model.batch import ArrayTally, BatchJob, BatchMark
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm.batch_jobs.arrays import ArrayMemory
from slurmclient.watching import unread
from slurmruntime.values.ids import ClusterId, JobId, Sluid, WorkloadKey

MARK = BatchMark(
    cluster=ClusterId("east"), namespace="physics", name="train", key=WorkloadKey("5b"), attempt=1
)
WAITING = BatchJob(
    id=JobId(7),
    sluid=Sluid("s7"),
    phase=JobPhase.WAITING,
    mark=MARK,
    states=frozenset({"2:PENDING", "3:PENDING"}),
    array_id=JobId(7),
)


def task(number: int, end: JobEnd | None, **changes: object) -> BatchJob:
    state = end.value if end else "RUNNING"
    return replace(
        WAITING,
        id=JobId(8 + number),
        sluid=Sluid(f"s{number}"),
        phase=JobPhase.ENDED if end else JobPhase.RUNNING,
        states=frozenset({f"{number}:{state}"}),
        end=end,
        **changes,  # type: ignore[arg-type]  # fields of any name
    )


DONE, BAD, RUNS = task(0, JobEnd.COMPLETED), task(1, JobEnd.FAILED, exit_code=3), task(1, None)


@pytest.fixture
def memory() -> ArrayMemory:
    return ArrayMemory()


def whole(memory: ArrayMemory, *parts: BatchJob, is_whole: bool = True) -> BatchJob:
    for part in parts:
        memory.see(part)
    return memory.merged(parts, is_whole=is_whole)


def test_its_records_are_one_job_that_counts_its_tasks(memory: ArrayMemory) -> None:
    job = whole(memory, WAITING, DONE, RUNS)

    assert (JobId(7), Sluid("s7"), JobPhase.RUNNING) == (job.id, job.sluid, job.phase)
    assert ArrayTally(waiting=2, running=1, succeeded=1) == job.array


def test_it_ends_with_its_last_task_and_as_the_worst(memory: ArrayMemory) -> None:
    job = whole(memory, DONE, BAD)

    assert (JobPhase.ENDED, JobEnd.FAILED, 3) == (job.phase, job.end, job.exit_code)
    assert ArrayTally(succeeded=1, failed=(1,)) == job.array
    assert job.is_over
    assert not whole(memory, DONE, replace(BAD, remains=True)).is_over


def test_what_slurm_has_forgotten_counts_to_the_end(memory: ArrayMemory) -> None:
    whole(memory, WAITING, DONE, BAD)
    memory.forgotten(DONE)
    memory.forgotten(BAD)

    rest = replace(
        WAITING,
        phase=JobPhase.ENDED,
        end=JobEnd.COMPLETED,
        states=frozenset({"2:COMPLETED", "3:COMPLETED"}),
    )
    job = whole(memory, rest)

    assert (JobEnd.FAILED, 3) == (job.end, job.exit_code)
    assert ArrayTally(succeeded=3, failed=(1,)) == job.array


def test_a_task_that_was_cancelled_before_it_began_has_no_record_and_failed(
    memory: ArrayMemory,
) -> None:
    whole(memory, WAITING, DONE)
    rest = replace(WAITING, states=frozenset({"3:PENDING"}))

    gone = ArrayTally(waiting=1, succeeded=1, failed=(2,), is_sure=False)
    assert gone == whole(memory, rest, DONE).array
    hidden = whole(memory, rest, DONE, is_whole=False)
    assert ArrayTally(waiting=2, succeeded=1) == hidden.array, "it may be among the unread"


def test_how_a_task_ended_that_vanished_while_it_ran_is_unknown(memory: ArrayMemory) -> None:
    whole(memory, WAITING, DONE, RUNS)

    job = whole(memory, DONE, replace(WAITING, phase=JobPhase.ENDED, end=JobEnd.COMPLETED))

    assert ArrayTally(succeeded=3, unknown=1, is_sure=False) == job.array
    assert job.end is JobEnd.COMPLETED


def test_a_task_that_runs_again_has_not_failed(memory: ArrayMemory) -> None:
    whole(memory, DONE, BAD)

    assert ArrayTally(running=1, succeeded=1) == whole(memory, DONE, RUNS).array


def test_what_became_of_a_task_is_kept_as_long_as_its_array(memory: ArrayMemory) -> None:
    whole(memory, WAITING, DONE)
    memory.forgotten(DONE)
    memory.keep_only(each for each in [WAITING.array_id])

    assert ArrayTally(waiting=2, succeeded=1) == whole(memory, WAITING).array


def test_arrays_that_are_gone_are_forgotten(memory: ArrayMemory) -> None:
    whole(memory, WAITING, DONE)
    memory.keep_only([])

    assert ArrayTally(succeeded=1) == whole(memory, DONE).array


def test_a_job_without_any_state_is_of_no_array() -> None:
    assert not unread.is_of_array(frozenset())


def test_of_what_is_unknown_placeholders_come_first_and_of_arrays_the_latest_records() -> None:
    single, task_of = frozenset({"PENDING"}), frozenset({"3:RUNNING"})
    seen: dict[int, frozenset[str]] = {JobId(n): task_of if n < 5 else single for n in range(1, 8)}

    found = unread.portion(list(seen), seen, most=5, known_to_be_odd=())

    assert (5, 6, 7, 4, 3) == tuple(found.ids)
    assert (False, True) == (found.is_behind, found.is_behind_on_arrays)
    assert unread.portion(list(seen), seen, most=2, known_to_be_odd=()).is_behind


def test_what_pods_name_is_fetched_by_a_reading_of_its_own() -> None:
    seen: dict[int, frozenset[str]] = {JobId(n): frozenset({"PENDING"}) for n in range(1, 8)}
    seen[JobId(8)] = frozenset({"3:RUNNING"})
    named = {JobId(4), JobId(6)}

    first = unread.portion(list(seen), seen, most=5, known_to_be_odd=(), likely={*named, JobId(99)})
    odd = unread.portion(list(seen), seen, most=5, known_to_be_odd=named, likely=named)
    many = unread.portion(list(seen), seen, most=2, known_to_be_odd=(), likely=set(seen))

    assert (4, 6) == tuple(first.ids)
    assert (True, True) == (first.is_behind, first.is_behind_on_arrays)
    assert (1, 2, 3, 4, 5) == tuple(odd.ids), "what cannot be read would be first for ever"
    assert (1, 2) == tuple(many.ids)


def test_pods_are_asked_only_where_order_matters() -> None:
    asked: list[int] = []

    def named() -> list[JobId]:
        asked.append(1)
        return [JobId(1), JobId(1000)]

    likely = unread.LikelyInterest(named)
    likely.remember([JobId(2), JobId(2000)])

    assert set() == set(likely.among([JobId(1), JobId(2)]))
    assert [] == asked
    assert {1, 2} == set(likely.among([JobId(n) for n in range(1, 101)]))
