"""The fields about results: files that are copied to claims once the job has ended."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmruntime.crd.conditions import LONGEST_MESSAGE
from slurmruntime.crd.fields import RULES, ObjectName, ObjectStruct, rule, text

MOST_RESULTS: Final = 16
LONGEST_PATH: Final = 1024

_NOT_UPWARDS: Final = rule(
    "!self.split('/').exists(part, part == '..')", "a path may not contain `..`"
)


class ResultTarget(ObjectStruct, frozen=True):
    """Where a result goes."""

    claim_name: Annotated[
        ObjectName, Meta(description="A PersistentVolumeClaim of the same namespace.")
    ]
    path: Annotated[
        str,
        Meta(
            max_length=LONGEST_PATH,
            pattern="^([^/].*)?$",
            description="Folder on the volume, created if it is missing; by default the volume's root. %j, %x and %u"
            " as in from.",
            extra_json_schema={RULES: [_NOT_UPWARDS]},
        ),
    ] = ""


class JobResult(ObjectStruct, frozen=True, rename={"source": "from"}):
    """A file or folder to copy."""

    to: Annotated[ResultTarget, Meta(description="Where it goes, under its own name.")]
    source: Annotated[
        str,
        Meta(
            max_length=LONGEST_PATH,
            description="File or folder on the cluster, relative to the job's working directory; by default the job's"
            " standard output. It must be below output.clusterPath. %j is the job's id, %x its name, %u its user.",
            extra_json_schema={RULES: [_NOT_UPWARDS]},
        ),
    ] = ""


class JobEnding(ObjectStruct, frozen=True):
    """How the job itself ended, regardless of its results."""

    phase: Annotated[Literal["Succeeded", "Failed"], Meta(description="Succeeded or Failed.")]
    reason: Annotated[str, text(256, "Why.")] = ""
    message: Annotated[str, text(LONGEST_MESSAGE, "The reason, for people.")] = ""


class JobResults(ObjectStruct, frozen=True):
    """The state of copying the results."""

    phase: Annotated[
        Literal["Collecting", "Collected", "Failed"],
        Meta(description="Collecting, Collected or Failed."),
    ]
    ended: Annotated[JobEnding, Meta(description="How the job itself ended.")]
    message: Annotated[
        str, text(LONGEST_MESSAGE, "Progress, or why the results were not copied.")
    ] = ""
