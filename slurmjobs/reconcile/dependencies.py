"""Translate the dependencies of a SlurmJob into Slurm's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from bridge.domain.model.pods import Pod
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import DependencyCondition, JobDependency

_WORDS: Final[Mapping[DependencyCondition, str]] = {
    "succeeded": "afterok",
    "failed": "afternotok",
    "ended": "afterany",
    "started": "after",
}
_ENDED: Final[Mapping[str, Literal["succeeded", "failed"]]] = {
    "Succeeded": "succeeded",
    "Failed": "failed",
}
_KILL: Final = "KILL_INVALID_DEPENDENCY"
"""A job that can never start is cancelled instead of waiting for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetDependency:
    """A dependency that keeps the job from being submitted."""

    text: str
    is_final: bool = False
    """It can never be met."""


@dataclass(frozen=True, slots=True)
class SlurmDependencies:
    """Dependencies in Slurm's syntax."""

    words: tuple[str, ...] = ()

    def merge_into(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """Return the fields of a job with these dependencies added to those of its script."""
        if not self.words:
            return fields
        own, flags = fields.get("dependency"), fields.get("flags")
        listed = [*flags] if isinstance(flags, list) else []
        expression = ",".join((*([own] if isinstance(own, str) and own else ()), *self.words))
        return {**fields, "dependency": expression, "flags": [*listed, _KILL]}


def resolve(
    job: SlurmJobObject,
    *,
    jobs: Mapping[str, SlurmJobObject | None],
    pods: Mapping[str, Pod | None],
) -> SlurmDependencies | UnmetDependency:
    """Return the dependencies for Slurm, or the first one that prevents the submit.

    The objects that the job depends on are in its namespace, by name; of pods, only those that Slurm places.
    """
    words: list[str] = []
    for dependency in job.spec.depends_on:
        prerequisite = _prerequisite(dependency, jobs, pods)
        conditions = _conditions(dependency, prerequisite)
        if isinstance(conditions, UnmetDependency):
            return conditions
        words.extend(conditions)
    return SlurmDependencies(tuple(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prerequisite:
    label: str
    job_id: int | None = None
    ended: Literal["succeeded", "failed", ""] = ""
    is_missing: bool = False
    is_collecting: bool = False
    """For Slurm its job may have ended; for those who wait for its results it has not."""


def _prerequisite(
    dependency: JobDependency,
    jobs: Mapping[str, SlurmJobObject | None],
    pods: Mapping[str, Pod | None],
) -> _Prerequisite:
    if dependency.job_id is not None:
        return _Prerequisite(label=f"Slurm job {dependency.job_id}", job_id=dependency.job_id)
    if dependency.pod is not None:
        return _pod_prerequisite(dependency.pod, pods.get(dependency.pod))
    name = dependency.slurm_job or ""
    return _job_prerequisite(name, jobs.get(name))


def _job_prerequisite(name: str, job: SlurmJobObject | None) -> _Prerequisite:
    label = f"SlurmJob {name}"
    if job is None:
        return _Prerequisite(label=label, is_missing=True)
    status = job.status
    return _Prerequisite(
        label=label,
        job_id=status.job_id,
        ended=_ENDED.get(status.phase or "", ""),
        is_collecting=bool(job.spec.results),
    )


def _pod_prerequisite(name: str, pod: Pod | None) -> _Prerequisite:
    label = f"pod {name}"
    if pod is None:
        return _Prerequisite(label=f"{label} placed by Slurm", is_missing=True)
    return _Prerequisite(label=label, job_id=pod.job_id, ended=_ENDED.get(pod.phase.value, ""))


def _conditions(
    dependency: JobDependency, prerequisite: _Prerequisite
) -> Iterator[str] | UnmetDependency:
    if prerequisite.is_missing:
        return UnmetDependency(text=f"waits for {prerequisite.label}, which does not exist")
    if prerequisite.ended:
        if dependency.condition in ("ended", "started", prerequisite.ended):
            return iter(())
        return UnmetDependency(
            text=f"can never start: {prerequisite.label} had to have {dependency.condition}, but has {prerequisite.ended}",
            is_final=True,
        )
    if prerequisite.job_id is None:
        return UnmetDependency(text=f"waits for {prerequisite.label}, which has no job yet")
    if prerequisite.is_collecting and dependency.condition != "started":
        return UnmetDependency(text=f"waits for {prerequisite.label} and its results")
    return iter([f"{_WORDS[dependency.condition]}:{prerequisite.job_id}"])
