"""The fields of `spec`: what the author of a SlurmJob asks for."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from slurmjobs.objects.results import MOST_RESULTS, JobResult
from slurmruntime.crd.fields import RULES, ObjectName, ObjectStruct, rule, text, unchanged

LONGEST_SCRIPT: Final = 1024 * 1024
"""Characters. etcd takes objects of 1.5 MiB, status and managed fields included."""

MOST_ARGUMENTS: Final = 256
MOST_VARIABLES: Final = 256
MOST_DEPENDENCIES: Final = 32

SUBMITTED_ONCE: Final = "cannot be changed after creation: create another SlurmJob"


class ScriptKey(ObjectStruct, frozen=True):
    """A key of a ConfigMap."""

    name: ObjectName
    key: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=253,
            pattern=r"^[-._a-zA-Z0-9]+$",
            description="The key whose value is the script.",
        ),
    ]


class ScriptSource(ObjectStruct, frozen=True):
    """The source of a script that is not in the SlurmJob itself."""

    config_map_key_ref: Annotated[
        ScriptKey, Meta(description="A key of a ConfigMap in the same namespace.")
    ]


class JobOutput(ObjectStruct, frozen=True):
    """The volume with the job's output, so that `kubectl logs` can print it."""

    claim_name: Annotated[
        ObjectName, Meta(description="A PersistentVolumeClaim of the same namespace.")
    ]
    cluster_path: Annotated[
        str,
        Meta(
            min_length=2,
            max_length=1024,
            pattern="^/[^/]",
            description="Where Slurm's nodes mount the volume, such as /scratch.",
        ),
    ]


class JobVariable(ObjectStruct, frozen=True):
    """An environment variable of the script."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=256,
            pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
            description="Its name.",
        ),
    ]
    value: Annotated[str, text(32_768, "Its value.")] = ""


DependencyCondition = Literal["succeeded", "failed", "ended", "started"]


class JobDependency(ObjectStruct, frozen=True):
    """Another job that this one waits for."""

    slurm_job: Annotated[
        ObjectName | None, Meta(description="Name of a SlurmJob in the same namespace.")
    ] = None
    pod: Annotated[
        ObjectName | None,
        Meta(
            description="Name of a pod in the same namespace that Slurm places; for a gang, any of its pods."
        ),
    ] = None
    job_id: Annotated[
        Annotated[int, Meta(ge=1, le=2**32 - 1)] | None, Meta(description="Id of a Slurm job.")
    ] = None
    condition: Annotated[
        DependencyCondition,
        Meta(
            description="The state that it must have reached; in sbatch's words afterok, afternotok, afterany or after."
        ),
    ] = "succeeded"


ONE_OTHER_JOB: Final = rule(
    "[has(self.slurmJob), has(self.pod), has(self.jobId)].filter(is_there, is_there).size() == 1",
    "expected one of slurmJob, pod and jobId",
)

JobOptions = dict[str, str | int | bool]
"""By the names in docs/slurmjob-options.md; `deploy/job_definition.py` writes their schema."""


SCRIPT_RULES: Final = (
    rule(
        r"self.startsWith('#!') || self.startsWith('\ufeff')",
        "line 1: the first line does not begin with #! and an interpreter, such as #!/bin/sh",
    ),
    rule(
        r"!self.startsWith('\ufeff')",
        "line 1: it begins with a byte-order mark: save it as UTF-8 text without one",
    ),
    rule(
        r"!self.contains('\r\n')",
        r"it has a DOS line break (\r\n): convert the script, for instance with dos2unix",
    ),
    rule(r"!self.contains('\u0000')", "it has a NUL character: a script is text, not a program"),
)
"""Faults of a script that the API server finds itself; the webhook finds these and more."""


class SlurmJobSpec(ObjectStruct, frozen=True):
    """The batch script and everything beside it."""

    script: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1, max_length=LONGEST_SCRIPT, extra_json_schema={RULES: [*SCRIPT_RULES]}
            ),
        ]
        | None,
        Meta(description="The batch script. Its #SBATCH lines are read as sbatch reads them."),
    ] = None
    script_from: Annotated[
        ScriptSource | None,
        Meta(description="Source of the script instead; read once, when the job is submitted."),
    ] = None
    args: Annotated[
        tuple[Annotated[str, text(4096, "One argument.")], ...],
        Meta(max_length=MOST_ARGUMENTS, description="Arguments of the script."),
    ] = ()
    options: Annotated[
        JobOptions, Meta(description="Options of sbatch; they override those in the script.")
    ] = msgspec.field(default_factory=dict)
    env: Annotated[
        tuple[JobVariable, ...],
        Meta(
            max_length=MOST_VARIABLES,
            description="Environment variables of the script, in addition to those that sbatch sets.",
            extra_json_schema={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
    ] = ()
    depends_on: Annotated[
        tuple[Annotated[JobDependency, Meta(extra_json_schema={RULES: [ONE_OTHER_JOB]})], ...],
        Meta(
            max_length=MOST_DEPENDENCIES,
            description="Jobs that this one waits for; all conditions must hold.",
            extra_json_schema={"x-kubernetes-list-type": "atomic"},
        ),
    ] = ()
    output: Annotated[
        JobOutput | None,
        Meta(description="The volume with the output; if set, pod NAME-job prints the output."),
    ] = None
    results: Annotated[
        tuple[JobResult, ...],
        Meta(
            max_length=MOST_RESULTS,
            description="Files to copy to claims once the job has ended; the SlurmJob succeeds only after that.",
            extra_json_schema={"x-kubernetes-list-type": "atomic"},
        ),
    ] = ()
    suspend: Annotated[
        bool,
        Meta(
            description="While true, nothing runs: no job is submitted, and an existing one is cancelled."
        ),
    ] = False
    active_deadline_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)] | None,
        Meta(
            description="Seconds after submission at which a job that has not ended is cancelled."
        ),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None,
        Meta(
            description="Seconds after its end at which the SlurmJob is deleted; by default, never."
        ),
    ] = None
    managed_by: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=63,
                pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9._]+$",
            ),
        ]
        | None,
        Meta(
            description="The controller responsible for this SlurmJob. slurm-bridge ignores it if this is"
            " anything but slurm-bridge.dev/slurmjob-controller."
        ),
    ] = None


FIXED: Final = (
    "script",
    "scriptFrom",
    "args",
    "options",
    "env",
    "dependsOn",
    "output",
    "results",
    "managedBy",
)

SPEC_RULES: Final = (
    rule("has(self.script) != has(self.scriptFrom)", "expected either script or scriptFrom"),
    rule(
        "!has(self.results) || size(self.results) == 0 || has(self.output)",
        "results need output: they are read from its claim",
        path=".results",
    ),
    *(rule(unchanged(field), SUBMITTED_ONCE, path=f".{field}") for field in FIXED),
)
