"""`why` of a SlurmJob: each state in words, and what to do about it."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.diagnosis.why import Diagnosis, Stage
from bridge.domain.model.jobs import JobPhase
from slurmjobs.lifecycle import why
from slurmjobs.lifecycle.outcome import ENDS
from slurmjobs.objects.status import ArrayTasks, JobOutputs, SlurmJobStatus
from slurmruntime.values.ids import JobId
from tests.slurmjobs.lifecycle.situations import NOW, slurm_job

QUEUED = QueuedJob(
    id=JobId(7), state="PENDING", phase=JobPhase.WAITING, reason="JobHeldAdmin", partition="p"
)
AHEAD = replace(QUEUED, id=JobId(3), user="bob", priority=9, reason="")


def answer(
    *queue: QueuedJob, spec: dict[str, Any] | None = None, deleted: bool = False, **status: Any
) -> Diagnosis:
    job = slurm_job(status=SlurmJobStatus(**status), deleted=deleted, **(spec or {}))
    return why.answer(job, now=NOW, queue=queue or None)


def test_a_waiting_job_is_told_by_what_slurm_says_now() -> None:
    found = answer(
        QUEUED, AHEAD, phase="Pending", job_id=7, reason="Priority", message="others first"
    )
    assert (Stage.WAITS, "waits in Slurm") == (found.stage, found.state)
    assert "an administrator holds it" in found.why
    assert "scontrol release" in found.next_step
    assert ("ahead of it", "1 (3 of bob)") in found.details


def test_without_slurm_the_status_is_told() -> None:
    found = answer(phase="Pending", job_id=7, state="PENDING", reason="Priority", message="others")
    assert "others (Priority)" == found.why
    assert ("Slurm job", "7 PENDING") in found.details


@pytest.mark.parametrize(
    ("reason", "step"),
    [
        ("PolicyRefused", "policy rule"),
        ("SubmitRefused", "what Slurm objects to"),
        ("ScriptMissing", "ConfigMap"),
        ("NamespaceNotEnabled", "kubectl label namespace physics"),
        ("SomethingNew", "doctor"),
    ],
)
def test_why_there_is_no_job(reason: str, step: str) -> None:
    found = answer(phase="Pending", reason=reason, message="it is so")
    assert (Stage.WAITS, f"it is so ({reason})") == (found.stage, found.why)
    assert step in found.next_step


@pytest.mark.parametrize(
    "reason", sorted({reason for reason, _ in ENDS.values()} - {"Succeeded", "Deadline"})
)
def test_after_every_bad_end_there_is_something_to_do(reason: str) -> None:
    found = answer(phase="Failed", job_id=7, reason=reason, message="it ended")
    assert (Stage.ENDED, "has failed") == (found.stage, found.state)
    assert found.next_step


def test_after_a_bad_exit_code_it_says_where_to_read() -> None:
    found = answer(
        phase="Failed",
        job_id=7,
        reason="NonZeroExit",
        message="failed with exit code 3",
        exit_code=3,
        outputs=JobOutputs(stdout="/scratch/a.out", stderr="/scratch/a.err"),
    )
    assert "/scratch/a.err" in found.next_step
    assert ("exit code", "3") in found.details


def test_an_array_names_the_tasks_that_failed() -> None:
    tasks = ArrayTasks(total=100, succeeded=99, failed=1, failed_tasks="17")
    found = answer(phase="Failed", job_id=7, reason="NonZeroExit", message="failed", array=tasks)
    assert ("failed tasks", "17") in found.details


@pytest.mark.parametrize(
    ("spec", "status", "stage", "words"),
    [
        ({"managed_by": "example.org/other"}, {}, Stage.NOT_OURS, "example.org/other"),
        ({}, {}, Stage.WAITS, "not submitted it yet"),
        ({"suspend": True}, {}, Stage.WAITS, "spec.suspend"),
        ({}, {"phase": "Running", "job_id": 7, "message": "runs on n1"}, Stage.RUNS, "runs on n1"),
        ({}, {"phase": "Succeeded", "message": "completed"}, Stage.ENDED, "completed"),
    ],
)
def test_every_other_state(
    spec: dict[str, Any], status: dict[str, Any], stage: Stage, words: str
) -> None:
    found = answer(spec=spec, **status)
    assert stage is found.stage
    assert words in found.why


def test_one_that_is_deleted_ends() -> None:
    assert Stage.ENDS is answer(deleted=True, phase="Running", job_id=7).stage
