"""What the soak of slurm-operator takes for a breach."""

import pytest

from tests.soak.operator import lives
from tests.soak.operator.lives import NativeJob


def found(job: NativeJob, *rows: str) -> list[str]:
    return list(lives.breaches([job], lives.accounted("\n".join(f"1|{row}" for row in rows))))


@pytest.mark.parametrize(
    ("job", "rows"),
    [
        (NativeJob("1", 3, 0), ["COMPLETED|0:0"]),
        (NativeJob("1", 3, 7), ["FAILED|7:0"]),
        (NativeJob("1", 3, 0, is_cancelled=True), ["CANCELLED by 0|0:15"]),
        (NativeJob("1", 3, 0, is_cancelled=True), ["COMPLETED|0:0"]),
        (NativeJob("1", 3, 0, is_excused=True), ["NODE_FAIL|0:0", "COMPLETED|0:0"]),
    ],
)
def test_who_ends_by_itself_by_a_person_or_with_its_worker_is_right(
    job: NativeJob, rows: list[str]
) -> None:
    assert not found(job, *rows)


@pytest.mark.parametrize(
    "rows",
    [["NODE_FAIL|0:0"], ["CANCELLED|0:15"], ["FAILED|1:0"], ["REQUEUED|0:0", "COMPLETED|0:0"], []],
)
def test_who_ends_otherwise_is_a_breach(rows: list[str]) -> None:
    assert 1 == len(found(NativeJob("1", 3, 0), *rows))


def test_a_job_is_open_while_its_last_attempt_is() -> None:
    job = NativeJob("1", 3, 0)
    attempts = lives.accounted("1|NODE_FAIL|0:0\n1|RUNNING|0:0")
    assert [job] == lives.open_ones([job], attempts)
    assert not lives.open_ones([job], lives.accounted("1|COMPLETED|0:0"))


def test_a_job_that_runs_after_its_end_was_forgotten_by_slurmctld() -> None:
    jobs = [NativeJob("1", 3, 0), NativeJob("2", 3, 0), NativeJob("3", 3, 0)]
    attempts = lives.accounted("1|COMPLETED|0:0\n2|RUNNING|0:0\n3|COMPLETED|0:0")
    assert [jobs[0]] == lives.forgotten(jobs, attempts, {"1", "2"})

    jobs[0].ended = attempts["1"]
    assert not lives.forgotten(jobs, attempts, {"1", "2"})
    cancelled = lives.accounted("1|CANCELLED|0:0")
    assert not list(lives.breaches(jobs[:1], cancelled))
