"""Which files of a job are copied to claims once it has ended, and what became of that."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmruntime.crd.conditions import LONGEST_MESSAGE
from slurmruntime.crd.fields import RULES, ObjectName, ObjectStruct, rule, text

MOST_RESULTS: Final = 16
LONGEST_PATH: Final = 1024

_NOT_UPWARDS: Final = rule(
    "!self.split('/').exists(part, part == '..')", "it has a part `..`, which may lead anywhere"
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
            description="Folder on the volume, made if it is missing; by default the volume's root. %j, %x and %u"
            " as in from.",
            extra_json_schema={RULES: [_NOT_UPWARDS]},
        ),
    ] = ""


class JobResult(ObjectStruct, frozen=True, rename={"source": "from"}):
    """A file or a folder that is copied."""

    to: Annotated[ResultTarget, Meta(description="Where it goes, under its own name.")]
    source: Annotated[
        str,
        Meta(
            max_length=LONGEST_PATH,
            description="File or folder on the cluster, from the job's working directory; by default the file of its"
            " standard output. It has to lie below output.clusterPath. %j is the job's id, %x its name, %u its user.",
            extra_json_schema={RULES: [_NOT_UPWARDS]},
        ),
    ] = ""


class JobEnding(ObjectStruct, frozen=True):
    """How the job itself ended, whatever becomes of its results."""

    phase: Annotated[Literal["Succeeded", "Failed"], Meta(description="Succeeded or Failed.")]
    reason: Annotated[str, text(256, "Why.")] = ""
    message: Annotated[str, text(LONGEST_MESSAGE, "The same in words.")] = ""


class JobResults(ObjectStruct, frozen=True):
    """What became of the results."""

    phase: Annotated[
        Literal["Collecting", "Collected", "Failed"],
        Meta(description="Collecting, Collected or Failed."),
    ]
    ended: Annotated[JobEnding, Meta(description="How the job itself ended.")]
    message: Annotated[
        str, text(LONGEST_MESSAGE, "What is happening, or why they were not copied.")
    ] = ""
