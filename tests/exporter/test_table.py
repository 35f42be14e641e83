"""The table of jobs: each submission, start, end and second counts once."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmexporter.collecting.jobs import lists_instead
from slurmexporter.jobtable.table import JobTable, by_base
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.job import Job, elapsed_s, task_count
from tests.exporter.records import job

WHERE = ("main", "physics")


@pytest.fixture
def table() -> JobTable:
    return JobTable(Tally(top_accounts=10))


def read(
    table: JobTable, now_s: float, *jobs: Job, is_first: bool = False, gone: Sequence[str] = ()
) -> None:
    """A reading of all states, and of the jobs whose state has changed."""
    states = {one.base if not one.key else f"{one.base}_{one.key}": _states(one) for one in jobs}
    changes = table.compare(states)
    for base in changes.gone:
        table.drop(base)
    for base in changes.changed:
        rows = [one for one in jobs if one.base == base]
        expected = table.expected(base)
        table.take(base, rows, expected=expected, began_s=now_s, is_first=is_first)
    table.credit_running(now_s)


def _states(one: Job) -> frozenset[str]:
    return frozenset({one.state, *one.flags})


def test_a_job_seen_from_its_submission_to_its_end_counts_once(table: JobTable) -> None:
    read(table, 950, job(7, "PENDING"))
    read(table, 1010, job(7))
    read(table, 1100, job(7, "COMPLETED", end_time=1090))
    read(table, 1115, job(7, "COMPLETED", end_time=1090))
    tally = table.tally
    assert {WHERE: 1} == tally.submits == tally.starts
    assert {(*WHERE, "COMPLETED"): 1} == tally.ends
    assert {WHERE: 4 * 90} == tally.cpu_s
    assert {WHERE: 2 * 90} == tally.gpu_s
    assert (60.0, 90.0) == (
        tally.wait_s["main"].total,
        tally.run_s["main", "COMPLETED"].total,
    )
    assert 90 / 3600 == tally.limit_used["main"].total


def test_a_job_that_came_and_went_between_two_readings_counts_as_well(table: JobTable) -> None:
    read(table, 900, is_first=True)
    read(table, 1100, job(7, "FAILED", end_time=1005))
    assert ({WHERE: 1}, {(*WHERE, "FAILED"): 1}, {WHERE: 20.0}) == (
        table.tally.starts,
        table.tally.ends,
        table.tally.cpu_s,
    )


def test_what_happened_before_the_first_reading_does_not_count(table: JobTable) -> None:
    read(table, 1050, job(7), job(8, "COMPLETED", end_time=1040), is_first=True)
    tally = table.tally
    assert ({}, {}, {}, {}) == (tally.submits, tally.starts, tally.ends, tally.cpu_s)
    read(table, 1060, job(7, "COMPLETED", end_time=1055), job(8, "COMPLETED", end_time=1040))
    assert ({(*WHERE, "COMPLETED"): 1}, {WHERE: 20.0}) == (tally.ends, tally.cpu_s)


def test_a_restart_of_slurmctld_counts_nothing_again(table: JobTable) -> None:
    jobs = (job(7), job(8, "COMPLETED", end_time=1040))
    read(table, 1050, *jobs)
    before = table.tally.copy()
    table.distrust()
    read(table, 1050, *jobs)
    assert (before.submits, before.starts, before.ends, before.cpu_s) == (
        table.tally.submits,
        table.tally.starts,
        table.tally.ends,
        table.tally.cpu_s,
    )


def test_a_job_with_the_id_of_a_lost_one_is_another(table: JobTable) -> None:
    read(table, 1050, job(7))
    table.distrust()
    other = job(7, step_id={"sluid": "other"}, start_time=1060)
    read(table, 1070, other)
    tally = table.tally
    assert ({WHERE: 2}, {(*WHERE, "LOST"): 1}) == (tally.starts, tally.ends)
    assert {WHERE: 4 * (50 + 10)} == tally.cpu_s


def test_a_job_that_slurmctld_has_forgotten_is_lost_only_if_it_had_not_ended(
    table: JobTable,
) -> None:
    read(table, 1050, job(7), job(8, "COMPLETED", end_time=1040))
    read(table, 1060)
    assert {(*WHERE, "COMPLETED"): 1, (*WHERE, "LOST"): 1} == table.tally.ends
    assert not list(table.jobs())


def test_a_requeued_job_runs_twice_and_ends_once(table: JobTable) -> None:
    read(table, 1050, job(7))
    read(table, 1060, job(7, "PENDING", restart_cnt=1, eligible_time=1058))
    read(table, 1080, job(7, restart_cnt=1, eligible_time=1058, start_time=1070))
    end = job(7, "COMPLETED", restart_cnt=1, eligible_time=1058, start_time=1070, end_time=1090)
    read(table, 1100, end)
    tally = table.tally
    assert ({WHERE: 1}, {WHERE: 2}, {WHERE: 1}) == (tally.submits, tally.starts, tally.requeues)
    assert {WHERE: 4 * (50 + 20)} == tally.cpu_s


def test_the_tasks_of_an_array_count_one_by_one(table: JobTable) -> None:
    array = {"array_job_id": {"set": True, "number": 7}}

    def task(number: int, *states: str, **fields: object) -> Job:
        task_id = {"set": True, "number": number}
        return job(7 + number, *states, array_task_id=task_id, **array, **fields)

    waiting = job(7, "PENDING", array_task_string="0-2", **array)
    states = {f"7_{number}": frozenset({"PENDING"}) for number in range(3)}
    table.compare(states)
    table.take("7", [waiting], expected=table.expected("7"), began_s=950)
    assert ([3], {WHERE: 3}, {}) == (
        [one.tasks for one in table.jobs()],
        table.tally.submits,
        table.tally.starts,
    )
    table.compare({**states, "7_1": frozenset({"RUNNING"})})
    waiting = job(7, "PENDING", array_task_string="0,2", **array)
    table.take("7", [waiting, task(1)], expected=table.expected("7"), began_s=1010)
    assert ([2, 1], {WHERE: 3}, {WHERE: 1}) == (
        [one.tasks for one in table.jobs()],
        table.tally.submits,
        table.tally.starts,
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [("7", 1), ("1-5,7", 6), ("0-99999%5", 100_000), ("10-20:5", 3), ("1,3,...", 0), ("5-1", 0)],
)
def test_tasks_are_counted_by_their_list(text: str, count: int) -> None:
    assert count == task_count(text)


def test_tasks_whose_list_is_cut_off_are_counted_by_their_states(table: JobTable) -> None:
    array = {"array_job_id": {"set": True, "number": 7}, "array_task_string": "0,2,..."}
    table.compare({f"7_{number}": frozenset({"PENDING"}) for number in range(0, 10, 2)})
    table.take("7", [job(7, "PENDING", **array)], expected=table.expected("7"), began_s=950)
    assert [5] == [one.tasks for one in table.jobs()]


def test_a_job_whose_state_changed_while_it_was_read_is_read_again(table: JobTable) -> None:
    table.compare({"7": frozenset({"PENDING"})})
    expected = table.expected("7")
    assert () == table.compare({"7": frozenset({"RUNNING"})}).gone
    table.take("7", [job(7, "PENDING")], expected=expected, began_s=950)
    assert ("7",) == table.compare({"7": frozenset({"RUNNING"})}).changed


def test_an_older_reading_does_not_replace_a_newer_one(table: JobTable) -> None:
    table.compare({"7": frozenset({"RUNNING"})})
    table.take("7", [job(7)], expected=table.expected("7"), began_s=1010)
    table.take("7", [job(7, "PENDING")], expected=None, began_s=1009)
    assert ["RUNNING"] == [one.state for one in table.jobs()]


@given(st.lists(st.floats(1000, 2000), max_size=20), st.floats(1000, 2000))
def test_the_seconds_of_a_run_do_not_depend_on_when_it_is_looked_at(
    looks: list[float], end_s: float
) -> None:
    table = JobTable(Tally(top_accounts=10))
    read(table, 990, job(7, "PENDING"))
    for now_s in sorted(looks):
        has_ended = now_s >= end_s
        read(table, now_s, job(7, "COMPLETED", end_time=int(end_s)) if has_ended else job(7))
    read(table, 2001, job(7, "COMPLETED", end_time=int(end_s)))
    assert 4 * (int(end_s) - 1000) == table.tally.cpu_s.get(WHERE, 0)


def test_suspended_time_does_not_count() -> None:
    suspended = job(7, "SUSPENDED", suspend_time=1020, pre_sus_time={"set": True, "number": 20})
    resumed = job(7, suspend_time=1100, pre_sus_time={"set": True, "number": 20})
    assert (20, 25) == (elapsed_s(suspended, 1090), elapsed_s(resumed, 1105))


def test_a_job_cancelled_while_it_waited_has_not_run(table: JobTable) -> None:
    read(table, 950, job(7, "PENDING"))
    read(table, 1060, job(7, "CANCELLED", end_time=1050, tres_alloc_str=""))
    assert ({}, {(*WHERE, "CANCELLED"): 1}, {}) == (
        table.tally.starts,
        table.tally.ends,
        table.tally.cpu_s,
    )


def test_parts_belong_to_their_array_or_heterogeneous_job() -> None:
    ids = ("7", "8_1", "8_2", "12+0", "13+1")
    found = by_base({one: frozenset({"PENDING"}) for one in ids})
    assert {"7", "8", "12"} == found.keys()


def test_large_arrays_are_listed_and_many_jobs_are_not() -> None:
    assert not lists_instead(job(number) for number in range(1, 10_000))
    waiting = job(7, "PENDING", array_task_string="0-99999")
    assert lists_instead([waiting, *(job(number) for number in range(8, 1000))])
    assert not lists_instead([])


def test_slurm_cuts_ends_to_seconds_and_so_do_we(table: JobTable) -> None:
    read(table, 990, job(7, "PENDING"))
    read(table, 1500.7, job(7))
    read(table, 1501, job(7, "COMPLETED", end_time=1500))
    assert {WHERE: 4 * 500} == table.tally.cpu_s
