"""Turn a script into the job that slurmrestd gets, or say everything that stands in its way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurmjobs.request import conflicts, description
from slurmjobs.request.environment import environment
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.request.settled import settle
from slurmjobs.script import read
from slurmjobs.script.chosen import ChosenOptions
from slurmjobs.script.read import ReadScript
from slurmruntime.values.faults import Fault


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A job to submit."""

    script: str
    fields: Mapping[str, object]
    """Of `job_desc_msg`, but for script and environment."""
    environment: Mapping[str, str]

    @property
    def body(self) -> dict[str, object]:
        """The job as slurmrestd's `/job/submit` takes it."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return {**self.fields, "environment": variables, "script": self.script}


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """What became of a script."""

    request: BatchRequest | None
    """None if there are faults."""
    faults: Sequence[Fault]
    warnings: Sequence[Fault]
    options: ChosenOptions
    """What was chosen, as far as it can be read."""


def build(
    script: str,
    *,
    name: str,
    origin: ScriptOrigin,
    fields: Mapping[str, object] | None = None,
) -> BuiltRequest:
    """Build the job of a batch script.

    Args:
        script: Its text.
        name: The job's name unless the script has one.
        origin: What sbatch takes from its surroundings.
        fields: Options beside the script, which are stronger: `slurmjobs.script.read.script`.
    """
    return assemble(script, read.script(script, fields), name=name, origin=origin)


def assemble(script: str, found: ReadScript, *, name: str, origin: ScriptOrigin) -> BuiltRequest:
    """Build the job of a script that has been read."""
    faults = [*found.faults, *conflicts.faults(found.options, origin.now)]
    if faults:
        return BuiltRequest(None, tuple(faults), found.warnings, found.options)
    settled = settle(found.options)
    request = BatchRequest(
        script=script,
        fields=description.fields(settled, name, origin),
        environment=environment(settled, origin),
    )
    return BuiltRequest(request, (), found.warnings, found.options)
