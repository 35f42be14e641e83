"""What the soak of slurm-operator takes for a breach."""

import pytest

from tests.soak.operator import lives
from tests.soak.operator.lives import Attempts, Death, NativeJob

DEATH = Death("w-0", from_s=100.4, until_s=130.2)


def attempts(*rows: str, where: str = "w-0|10|20") -> Attempts:
    return lives.accounted("\n".join(f"{row}|{where}" for row in rows))


def found(job: NativeJob, *rows: str) -> list[str]:
    return list(lives.breaches([job], attempts(*(f"1|{row}" for row in rows)), [DEATH]))


@pytest.mark.parametrize(
    ("job", "rows"),
    [
        (NativeJob("1", 3, 0), ["COMPLETED|0:0"]),
        (NativeJob("1", 3, 7), ["FAILED|7:0"]),
        (NativeJob("1", 3, 0, is_cancelled=True), ["CANCELLED by 0|0:15"]),
        (NativeJob("1", 3, 0, is_cancelled=True), ["COMPLETED|0:0"]),
    ],
)
def test_who_ends_by_itself_or_by_a_person_is_right(job: NativeJob, rows: list[str]) -> None:
    assert not found(job, *rows)


@pytest.mark.parametrize(
    ("where", "is_excused"),
    [
        ("w-0|90|120", True),
        ("w-0|90|100", True),  # killed within this second
        ("w-0|110|120", True),  # it was to run there
        ("w-0|90|Unknown", True),
        ("w-0|90|98", False),
        ("w-0|131|140", False),
        ("w-1|90|120", False),
        ("None assigned|Unknown|Unknown", False),
    ],
)
def test_who_was_on_a_worker_while_that_was_dead_may_be_lost(
    where: str, *, is_excused: bool
) -> None:
    job, rows = NativeJob("1", 3, 0), attempts("1|NODE_FAIL|0:0", where=where)
    assert is_excused is (not list(lives.breaches([job], rows, [DEATH])))
    assert is_excused is bool(lives.excused([job], rows, [DEATH]))


def test_until_a_worker_is_back_it_is_dead() -> None:
    rows = attempts("1|NODE_FAIL|0:0", where="w-0|9999|9999")
    assert lives.excused([NativeJob("1", 3, 0)], rows, [Death("w-0", from_s=100)])


@pytest.mark.parametrize(
    "rows",
    [["NODE_FAIL|0:0"], ["CANCELLED|0:15"], ["FAILED|1:0"], ["REQUEUED|0:0", "COMPLETED|0:0"], []],
)
def test_who_ends_otherwise_is_a_breach(rows: list[str]) -> None:
    assert 1 == len(found(NativeJob("1", 3, 0), *rows))


def test_a_job_is_open_while_its_last_attempt_is() -> None:
    job = NativeJob("1", 3, 0)
    assert [job] == lives.open_ones([job], attempts("1|NODE_FAIL|0:0", "1|RUNNING|0:0"))
    assert [job] == lives.open_ones([job], {})
    assert not lives.open_ones([job], attempts("1|COMPLETED|0:0"))


def test_a_job_that_runs_after_its_end_was_forgotten_by_slurmctld() -> None:
    jobs = [NativeJob("1", 3, 0), NativeJob("2", 3, 0), NativeJob("3", 3, 0)]
    before = attempts("1|COMPLETED|0:0", "2|RUNNING|0:0", "3|COMPLETED|0:0")
    assert [jobs[0]] == lives.forgotten(jobs, before, {"1", "2"})

    jobs[0].ended = before["1"]
    assert not lives.forgotten(jobs, before, {"1", "2"})
    assert not list(lives.breaches(jobs[:1], attempts("1|CANCELLED|0:0"), []))


@pytest.mark.parametrize(
    ("row", "where", "now_s", "is_unmissed"),
    [
        ("1|RUNNING|0:0", "w-0|90|Unknown", 191, True),
        ("1|RUNNING|0:0", "w-0|90|Unknown", 190, False),  # slurmctld may still miss it
        ("1|RUNNING|0:0", "w-0|101|Unknown", 191, False),
        ("1|RUNNING|0:0", "w-1|90|Unknown", 191, False),
        ("1|NODE_FAIL|0:0", "w-0|90|120", 191, False),
    ],
)
def test_a_job_that_died_with_its_worker_and_is_not_missed(
    row: str, where: str, now_s: float, *, is_unmissed: bool
) -> None:
    jobs, rows = [NativeJob("1", 3, 0)], attempts(row, where=where)
    assert is_unmissed is bool(lives.unmissed(jobs, rows, [DEATH], now_s))
