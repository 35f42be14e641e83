"""What the dependencies of a SlurmJob are to Slurm."""

import msgspec
import pytest

from bridge.domain.model.pods import Phase, Pod
from slurmjobs.objects.results import JobResult, ResultTarget
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import DependencyCondition, JobDependency, SlurmJobSpec
from slurmjobs.objects.status import JobPhase, SlurmJobStatus
from slurmjobs.reconcile import dependencies
from slurmjobs.reconcile.dependencies import SlurmDependencies, UnmetDependency
from slurmruntime.values import names
from tests.make import members
from tests.slurmjobs.lifecycle.situations import slurm_job


def resolve(
    condition: DependencyCondition, other: SlurmJobObject | None, **more: int
) -> SlurmDependencies | UnmetDependency:
    each = JobDependency(
        slurm_job=None if more else "prepare", condition=condition, job_id=more.get("job_id")
    )
    return dependencies.resolve(slurm_job(depends_on=(each,)), jobs={"prepare": other}, pods={})


def resolve_pod(
    condition: DependencyCondition, pod: Pod | None
) -> SlurmDependencies | UnmetDependency:
    each = JobDependency(pod="train-0", condition=condition)
    return dependencies.resolve(slurm_job(depends_on=(each,)), jobs={}, pods={"train-0": pod})


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
        assert SlurmDependencies((f"{word}:41",)) == resolve(condition, other(phase))
    assert SlurmDependencies((f"{word}:9",)) == resolve(condition, None, job_id=9)


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
            assert SlurmDependencies() == found
        else:
            assert isinstance(found, UnmetDependency)
            assert found.is_final


def test_one_without_a_job_is_waited_for() -> None:
    for missing in (None, other("Pending", job_id=None)):
        found = resolve("succeeded", missing)
        assert isinstance(found, UnmetDependency)
        assert not found.is_final


def test_one_whose_results_are_still_copied_has_not_ended() -> None:
    to = ResultTarget(claim_name="kept")
    spec = SlurmJobSpec(script="#!/bin/sh\n", results=(JobResult(source="a", to=to),))
    found = msgspec.structs.replace(other("Running"), spec=spec)

    assert SlurmDependencies(("after:41",)) == resolve("started", found)
    waits = resolve("succeeded", found)
    assert isinstance(waits, UnmetDependency)
    assert not waits.is_final
    done = msgspec.structs.replace(other("Succeeded"), spec=spec)
    assert SlurmDependencies() == resolve("succeeded", done)


def test_slurm_is_told_of_a_pods_job() -> None:
    placed = members.pod("train-0", labels={names.JOB_ID_LABEL: "41"})

    assert SlurmDependencies(("afterok:41",)) == resolve_pod("succeeded", placed)
    for missing in (None, members.pod("train-0")):
        found = resolve_pod("succeeded", missing)
        assert isinstance(found, UnmetDependency)
        assert not found.is_final
    ended = members.pod("train-0", labels={names.JOB_ID_LABEL: "41"}, phase=Phase.FAILED)
    assert SlurmDependencies() == resolve_pod("failed", ended)
    never = resolve_pod("succeeded", ended)
    assert isinstance(never, UnmetDependency)
    assert never.is_final


def test_the_scripts_own_dependencies_and_flags_stay() -> None:
    fields = {"dependency": "singleton", "flags": ["SPREAD_JOB"], "name": "x"}

    assert {
        "dependency": "singleton,afterok:41",
        "flags": ["SPREAD_JOB", "KILL_INVALID_DEPENDENCY"],
        "name": "x",
    } == SlurmDependencies(("afterok:41",)).merge_into(fields)
    assert fields == SlurmDependencies().merge_into(fields)
