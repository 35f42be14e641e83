"""What the histories of SlurmJobs take for a breach."""

from typing import Any

import pytest

from tests.soak.slurm_jobs import JobFate, JobLife, breaches_of

DONE: dict[str, Any] = {
    "phase": "Succeeded",
    "reason": "Succeeded",
    "jobId": 7,
    "exitCode": 0,
    "attempt": 1,
}
BAD = {**DONE, "phase": "Failed", "reason": "NonZeroExit", "exitCode": 7}


def found(
    fate: JobFate,
    status: dict[str, Any],
    own: list[tuple[str, str]],
    *others: str,
) -> list[str]:
    return breaches_of(JobLife("a", fate, 0.0), status, own, others)


def test_one_job_with_the_end_that_sacct_has_is_right() -> None:
    assert not found(JobFate.ENDS, DONE, [("COMPLETED", "0:0")])
    assert not found(JobFate.EXITS, BAD, [("FAILED", "7:0")])
    assert not found(
        JobFate.IS_SUSPENDED, {**DONE, "attempt": 2}, [("COMPLETED", "0:0")], "CANCELLED by 0"
    )
    assert not found(JobFate.IS_DELETED, {}, [], "CANCELLED by 0")
    cancelled = {**BAD, "exitCode": 0, "reason": "Cancelled"}
    for code in ("0:0", "0:15", "143:0"):
        assert not found(JobFate.IS_CANCELLED, cancelled, [("CANCELLED by 0", code)])
    tasks = [("COMPLETED", "0:0"), ("FAILED", "1:0")]
    assert not found(JobFate.IS_ARRAY, {**BAD, "exitCode": 1}, tasks)


@pytest.mark.parametrize(
    ("fate", "status", "own", "others"),
    [
        pytest.param(JobFate.ENDS, DONE, [("COMPLETED", "0:0")], ["COMPLETED"], id="twice"),
        pytest.param(JobFate.ENDS, DONE, [("COMPLETED", "0:0")], ["CANCELLED by 0"], id="again"),
        pytest.param(JobFate.ENDS, DONE, [], [], id="never"),
        pytest.param(JobFate.ENDS, DONE, [("FAILED", "1:0")], [], id="another end"),
        pytest.param(JobFate.EXITS, BAD, [("FAILED", "3:0")], [], id="another code"),
        pytest.param(JobFate.IS_DELETED, {}, [], ["RUNNING"], id="lives on"),
        pytest.param(
            JobFate.ENDS, {**BAD, "reason": "JobLost"}, [("FAILED", "7:0")], [], id="given up"
        ),
    ],
)
def test_everything_else_is_a_breach(
    fate: JobFate, status: dict[str, Any], own: list[tuple[str, str]], others: list[str]
) -> None:
    assert found(fate, status, own, *others)
