"""What the dependencies of a SlurmJob are to Slurm."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from jobs.objects.slurmjob import SlurmJobObject
from jobs.objects.spec import DependencyCondition, JobDependency

_WORDS: Final[Mapping[DependencyCondition, str]] = {
    "succeeded": "afterok",
    "failed": "afternotok",
    "ended": "afterany",
    "started": "after",
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


Named = Callable[[str, str], SlurmJobObject | None]
"""Returns the SlurmJob of that namespace and name."""


def resolve(job: SlurmJobObject, named: Named) -> Resolved | Unmet:
    """Return what Slurm is told, or the first dependency that is in the way."""
    words: list[str] = []
    for each in job.spec.depends_on:
        found = _one(job, each, named)
        if isinstance(found, Unmet):
            return found
        words.extend(found)
    return Resolved(tuple(words))


def _one(job: SlurmJobObject, each: JobDependency, named: Named) -> Iterator[str] | Unmet:
    word = _WORDS[each.condition]
    if each.job_id is not None:
        return iter([f"{word}:{each.job_id}"])
    name = each.slurm_job or ""
    other = named(job.metadata.namespace, name)
    if other is None:
        return Unmet(text=f"waits for SlurmJob {name}, which does not exist")
    if other.status.phase in ("Succeeded", "Failed"):
        is_met = each.condition in ("ended", "started") or (
            (each.condition == "succeeded") == (other.status.phase == "Succeeded")
        )
        if is_met:
            return iter(())
        how = other.status.phase.lower()
        return Unmet(
            text=f"can never start: SlurmJob {name} was required to have {each.condition}, and has {how}",
            is_final=True,
        )
    if other.status.job_id is None:
        return Unmet(text=f"waits for SlurmJob {name}, which has no job yet")
    return iter([f"{word}:{other.status.job_id}"])
