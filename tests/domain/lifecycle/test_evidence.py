"""Whether Slurm lost a placeholder that it does not know, or whether the job had ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bridge.domain.lifecycle import evidence
from bridge.domain.lifecycle.evidence import AccountingRecord, Numbering
from bridge.domain.observation.view import Evidence
from slurmruntime.values.ids import JobId

BEGAN = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RUNNING = AccountingRecord(
    states=frozenset({"RUNNING"}), started_at=BEGAN, ended_at=None, time_limit_min=90
)


def ended(state: str, *, after: timedelta = HOUR, by: str = "") -> AccountingRecord:
    return replace(RUNNING, states=frozenset({state}), ended_at=BEGAN + after, ended_by=by)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(RUNNING, Evidence.LOST, id="slurmdbd waits for its end"),
        pytest.param(
            replace(RUNNING, states=frozenset({"PENDING"}), started_at=None),
            Evidence.LOST,
            id="its start was lost too",
        ),
        pytest.param(ended("CANCELLED", by="root"), Evidence.ENDED, id="somebody cancelled it"),
        pytest.param(ended("CANCELLED"), Evidence.LOST, id="slurmctld -c cancelled it"),
        pytest.param(ended("COMPLETED"), Evidence.ENDED, id="it was completed"),
        pytest.param(
            ended("COMPLETED", after=timedelta(0)), Evidence.LOST, id="it was fixed as a runaway"
        ),
        pytest.param(ended("TIMEOUT"), Evidence.ENDED, id="its time was over"),
        pytest.param(ended("NODE_FAIL"), Evidence.NODE_FAILED, id="its node failed"),
        pytest.param(ended("PREEMPTED"), Evidence.ENDED, id="it was preempted"),
    ],
)
def test_what_slurmdbd_says_is_evidence(record: AccountingRecord, expected: Evidence) -> None:
    assert expected is evidence.verdict(record, is_up_to_date=True)


def test_while_slurmdbd_lags_behind_only_an_end_is_evidence() -> None:
    cancelled = ended("CANCELLED", by="root")

    assert Evidence.PENDING is evidence.verdict(RUNNING, is_up_to_date=False)
    assert Evidence.ENDED is evidence.verdict(cancelled, is_up_to_date=False)


def test_a_job_that_was_cancelled_before_it_began_has_ended() -> None:
    assert Evidence.ENDED is evidence.verdict(
        replace(ended("CANCELLED"), started_at=None), is_up_to_date=True
    )


@pytest.mark.parametrize(
    ("job_id", "next_id", "expected"),
    [
        pytest.param(7, 8, False, id="given out, the next one is another"),
        pytest.param(7, 7, True, id="about to be given out again"),
        pytest.param(7, 1, True, id="all is forgotten"),
        pytest.param(995, 3, False, id="they may have begun again after the last"),
        pytest.param(995, 300, True, id="too far to have begun again"),
        pytest.param(500, 3, True, id="too early to have been among the last"),
    ],
)
def test_job_ids_went_backwards(job_id: int, next_id: int, *, expected: bool) -> None:
    numbering = Numbering(next_id=JobId(next_id), last_id=JobId(1000))

    assert expected == evidence.went_backwards(JobId(job_id), numbering)
