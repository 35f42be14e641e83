"""What the dependencies of a SlurmJob are to Slurm."""

from collections.abc import Callable, Iterator, Mapping
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
"""A job that can never start is cancelled, and not left to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A dependency that keeps the job from being submitted."""

    text: str
    is_final: bool = False
    """It never will be met."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Dependencies in Slurm's words."""

    words: tuple[str, ...] = ()

    def added_to(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """Return the fields of a job with these dependencies beside those of its script."""
        if not self.words:
            return fields
        own, flags = fields.get("dependency"), fields.get("flags")
        listed = [*flags] if isinstance(flags, list) else []
        every = ",".join((*([own] if isinstance(own, str) and own else ()), *self.words))
        return {**fields, "dependency": every, "flags": [*listed, _KILL]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What jobs may depend on, by namespace and name."""

    job: Callable[[str, str], SlurmJobObject | None]
    pod: Callable[[str, str], Pod | None]
    """Of those that Slurm places."""


def resolve(job: SlurmJobObject, others: Others) -> Resolved | Unmet:
    """Return what Slurm is told, or the first dependency that is in the way."""
    words: list[str] = []
    for each in job.spec.depends_on:
        found = _one(each, _other(job.metadata.namespace, each, others))
        if isinstance(found, Unmet):
            return found
        words.extend(found)
    return Resolved(tuple(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Other:
    """Another job, as far as one may depend on it."""

    called: str
    job_id: int | None = None
    ended: Literal["succeeded", "failed", ""] = ""
    is_missing: bool = False
    is_collecting: bool = False
    """Its job may have ended for Slurm; it has not for those who wait for its results."""


def _other(namespace: str, each: JobDependency, others: Others) -> _Other:
    if each.job_id is not None:
        return _Other(called=f"Slurm job {each.job_id}", job_id=each.job_id)
    if each.pod is not None:
        return _of_pod(each.pod, others.pod(namespace, each.pod))
    name = each.slurm_job or ""
    return _of_job(name, others.job(namespace, name))


def _of_job(name: str, job: SlurmJobObject | None) -> _Other:
    called = f"SlurmJob {name}"
    if job is None:
        return _Other(called=called, is_missing=True)
    status = job.status
    return _Other(
        called=called,
        job_id=status.job_id,
        ended=_ENDED.get(status.phase or "", ""),
        is_collecting=bool(job.spec.results),
    )


def _of_pod(name: str, pod: Pod | None) -> _Other:
    called = f"pod {name}"
    if pod is None:
        return _Other(called=f"{called}, of those that Slurm places", is_missing=True)
    return _Other(called=called, job_id=pod.job_id, ended=_ENDED.get(pod.phase.value, ""))


def _one(each: JobDependency, other: _Other) -> Iterator[str] | Unmet:
    if other.is_missing:
        return Unmet(text=f"waits for {other.called}, which does not exist")
    if other.ended:
        if each.condition in ("ended", "started", other.ended):
            return iter(())
        return Unmet(
            text=f"can never start: {other.called} was required to have {each.condition}, and has {other.ended}",
            is_final=True,
        )
    if other.job_id is None:
        return Unmet(text=f"waits for {other.called}, which has no job yet")
    if other.is_collecting and each.condition != "started":
        return Unmet(text=f"waits for {other.called}, and for its results")
    return iter([f"{_WORDS[each.condition]}:{other.job_id}"])
