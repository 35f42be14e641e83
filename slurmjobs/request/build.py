"""Turn a script into the job that slurmrestd gets, or list all of its faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurmjobs.request import conflicts, description
from slurmjobs.request.environment import environment
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.request.settled import settle
from slurmjobs.script import read
from slurmjobs.script.option_values import OptionValues
from slurmjobs.script.read import ScriptContent
from slurmruntime.values.faults import Fault


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A job to submit."""

    script: str
    fields: Mapping[str, object]
    """Fields of `job_desc_msg`, without script and environment."""
    environment: Mapping[str, str]

    @property
    def body(self) -> dict[str, object]:
        """The job in the form that slurmrestd's `/job/submit` accepts."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return {**self.fields, "environment": variables, "script": self.script}


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The job of a script, or its faults."""

    request: BatchRequest | None
    faults: Sequence[Fault]
    warnings: Sequence[Fault]
    options: OptionValues
    """The options that could be read."""


def build(
    script: str, *, name: str, origin: ScriptOrigin, fields: Mapping[str, object] | None = None
) -> BuildResult:
    """Build the job of a batch script, which has this name unless the script has one.

    fields: options beside the script, which override it: see `slurmjobs.script.read.script`.
    """
    return assemble(script, read.script(script, fields), name=name, origin=origin)


def assemble(
    script: str, content: ScriptContent, *, name: str, origin: ScriptOrigin
) -> BuildResult:
    """Build the job of a script that was read already."""
    faults = [*content.faults, *conflicts.faults(content.options, origin.now)]
    if faults:
        return BuildResult(None, tuple(faults), content.warnings, content.options)
    effective = settle(content.options)
    request = BatchRequest(
        script=script,
        fields=description.fields(effective, name, origin),
        environment=environment(effective, origin),
    )
    return BuildResult(request, (), content.warnings, content.options)
