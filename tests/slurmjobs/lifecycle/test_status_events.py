"""Few Events are sent of a SlurmJob: its end, and what somebody should see to."""

from typing import Any

import pytest

from slurmjobs.lifecycle import status_events
from slurmjobs.lifecycle.status_events import EventContent
from slurmjobs.objects.status import SlurmJobStatus

NONE: dict[str, Any] = {}
QUEUED: dict[str, Any] = {"phase": "Pending", "job_id": 7, "reason": "Priority"}
RUNS: dict[str, Any] = {"phase": "Running", "job_id": 7, "reason": "Running"}
HELD: dict[str, Any] = {"phase": "Pending", "job_id": 7, "reason": "JobHeldAdmin"}
REFUSED: dict[str, Any] = {"phase": "Pending", "reason": "PolicyRefused", "message": "no rule"}
DONE: dict[str, Any] = {"phase": "Succeeded", "job_id": 7, "reason": "Succeeded"}
FAILED: dict[str, Any] = {"phase": "Failed", "job_id": 7, "reason": "TimeLimit"}


def told(before: dict[str, Any], after: dict[str, Any]) -> EventContent | None:
    return status_events.of(SlurmJobStatus(**before), SlurmJobStatus(**after))


@pytest.mark.parametrize(
    ("before", "after", "reason", "is_warning"),
    [
        pytest.param(QUEUED, DONE, "Succeeded", False, id="succeeded"),
        pytest.param(RUNS, FAILED, "TimeLimit", True, id="failed"),
        pytest.param(NONE, REFUSED, "PolicyRefused", True, id="refused"),
        pytest.param(
            REFUSED, {**REFUSED, "message": "no user"}, "PolicyRefused", True, id="otherwise"
        ),
        pytest.param(NONE, HELD, "JobHeldAdmin", True, id="held from the start"),
        pytest.param(QUEUED, HELD, "JobHeldAdmin", True, id="held later"),
        pytest.param(
            RUNS, {**RUNS, "reason": "SuspendedInSlurm"}, "SuspendedInSlurm", True, id="paused"
        ),
        pytest.param(RUNS, {**QUEUED, "restarts": 1}, "Requeued", True, id="requeued"),
        pytest.param(RUNS, {**RUNS, "restarts": 1}, "Requeued", True, id="runs again already"),
        pytest.param(
            RUNS, {"phase": "Pending", "reason": "Suspended"}, "Suspended", False, id="suspended"
        ),
        pytest.param(
            NONE, {"phase": "Pending", "reason": "Dependency"}, "Dependency", False, id="depends"
        ),
        pytest.param(
            NONE, {"phase": "Failed", "reason": "ScriptInvalid"}, "ScriptInvalid", True, id="never"
        ),
    ],
)
def test_what_people_wait_for_or_act_on_is_an_event(
    before: dict[str, Any], after: dict[str, Any], reason: str, is_warning: bool
) -> None:
    found = told(before, after)
    assert found is not None
    assert (reason, is_warning) == (found.reason, found.is_warning)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(NONE, QUEUED, id="is submitted"),
        pytest.param(QUEUED, RUNS, id="starts"),
        pytest.param(QUEUED, {**QUEUED, "reason": "Resources"}, id="waits for something else"),
        pytest.param(HELD, {**HELD, "message": "still"}, id="still held"),
        pytest.param(HELD, QUEUED, id="released"),
        pytest.param(REFUSED, REFUSED, id="still refused"),
        pytest.param(DONE, {**DONE, "nodes": "n1"}, id="ended long ago"),
    ],
)
def test_what_the_status_shows_anyway_is_none(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert told(before, after) is None
