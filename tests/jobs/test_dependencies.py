"""What the dependencies of a SlurmJob are to Slurm."""

import msgspec
import pytest

from jobs.controller import dependencies
from jobs.controller.dependencies import Resolved, Unmet
from jobs.objects.slurmjob import SlurmJobObject
from jobs.objects.spec import DependencyCondition, JobDependency
from jobs.objects.status import JobPhase, SlurmJobStatus
from tests.jobs.lifecycle.situations import slurm_job


def resolve(
    condition: DependencyCondition, other: SlurmJobObject | None, **more: int
) -> Resolved | Unmet:
    each = JobDependency(
        slurm_job=None if more else "prepare", condition=condition, job_id=more.get("job_id")
    )
    return dependencies.resolve(slurm_job(depends_on=(each,)), lambda _namespace, _name: other)


def other(phase: JobPhase, job_id: int | None = 41) -> SlurmJobObject:
    return msgspec.structs.replace(
        slurm_job(), status=SlurmJobStatus(phase=phase, job_id=job_id, attempt=1)
    )


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ("succeeded", "afterok"),
        ("failed", "afternotok"),
        ("ended", "afterany"),
        ("started", "after"),
    ],
)
def test_slurm_is_told_while_the_other_has_not_ended(
    condition: DependencyCondition, word: str
) -> None:
    for phase in ("Pending", "Running"):
        assert Resolved((f"{word}:41",)) == resolve(condition, other(phase))
    assert Resolved((f"{word}:9",)) == resolve(condition, None, job_id=9)


@pytest.mark.parametrize(
    ("condition", "met_by"),
    [
        ("succeeded", {"Succeeded"}),
        ("failed", {"Failed"}),
        ("ended", {"Succeeded", "Failed"}),
        ("started", {"Succeeded", "Failed"}),
    ],
)
def test_one_that_has_ended_is_judged_by_its_status(
    condition: DependencyCondition, met_by: set[str]
) -> None:
    ends: tuple[JobPhase, ...] = ("Succeeded", "Failed")
    for phase in ends:
        found = resolve(condition, other(phase))
        if phase in met_by:
            assert Resolved() == found
        else:
            assert isinstance(found, Unmet)
            assert found.is_final


def test_one_without_a_job_is_waited_for() -> None:
    for missing in (None, other("Pending", job_id=None)):
        found = resolve("succeeded", missing)
        assert isinstance(found, Unmet)
        assert not found.is_final


def test_the_scripts_own_dependencies_and_flags_stay() -> None:
    fields = {"dependency": "singleton", "flags": ["SPREAD_JOB"], "name": "x"}

    assert {
        "dependency": "singleton,afterok:41",
        "flags": ["SPREAD_JOB", "KILL_INVALID_DEPENDENCY"],
        "name": "x",
    } == Resolved(("afterok:41",)).added_to(fields)
    assert fields == Resolved().added_to(fields)
