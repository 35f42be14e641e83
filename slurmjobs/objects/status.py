"""What we tell of a SlurmJob. Every part has a bound, so that a status never exceeds some kilobytes."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmjobs.objects.results import JobResults
from slurmruntime.crd.conditions import LONGEST_MESSAGE, MOST_CONDITIONS, Number, ObjectCondition
from slurmruntime.crd.fields import Moment, ObjectStruct, text

LONGEST_NODES: Final = 1024

JobPhase = Literal["Pending", "Running", "Succeeded", "Failed"]
"""The words that tools written for pods know."""


class ArrayTasks(ObjectStruct, frozen=True):
    """How the tasks of an array stand."""

    total: Annotated[Number, Meta(description="All tasks.")] = 0
    pending: Annotated[Number, Meta(description="Tasks that wait.")] = 0
    running: Annotated[Number, Meta(description="Tasks that run.")] = 0
    succeeded: Annotated[Number, Meta(description="Tasks that ended well.")] = 0
    failed: Annotated[Number, Meta(description="Tasks that ended otherwise.")] = 0
    unknown: Annotated[
        Number,
        Meta(
            description="Tasks whose end nobody saw; slurmdbd is asked for them when the array ends."
        ),
    ] = 0
    failed_tasks: Annotated[
        str, text(1024, "Which failed, such as 3,17-20; cut off with … if there are many.")
    ] = ""


class JobOutputs(ObjectStruct, frozen=True):
    """Where the job writes."""

    stdout: Annotated[str, text(4096, "File of the standard output, on the cluster.")] = ""
    stderr: Annotated[str, text(4096, "File of the standard error, on the cluster.")] = ""
    directory: Annotated[str, text(4096, "The job's working directory, on the cluster.")] = ""


class SlurmJobStatus(ObjectStruct, frozen=True):
    """What became of the SlurmJob; written by slurm-bridge only."""

    phase: Annotated[
        JobPhase | None,
        Meta(description="One of four words, the same as for pods; cancelled jobs are Failed."),
    ] = None
    job_id: Annotated[
        Annotated[int, Meta(ge=1, le=2**32 - 1)] | None,
        Meta(description="Id of the Slurm job, of an array the array's."),
    ] = None
    sluid: Annotated[str, text(64, "Slurm's id of the job that is never used again.")] = ""
    state: Annotated[
        str, text(256, "Slurm's own word for the job's state, such as PENDING or RUNNING.")
    ] = ""
    reason: Annotated[
        str, text(256, "Slurm's reason while the job waits, ours when it has ended.")
    ] = ""
    message: Annotated[
        str, text(LONGEST_MESSAGE, "What is happening, and what you can do about it.")
    ] = ""
    user: Annotated[str, text(256, "The Slurm user whose job it is.")] = ""
    uid: Annotated[Number | None, Meta(description="That user's number, as Slurm has it.")] = None
    gid: Annotated[Number | None, Meta(description="The number of the job's group.")] = None
    account: Annotated[str, text(256, "The account that is charged.")] = ""
    partition: Annotated[str, text(1024, "The partition.")] = ""
    qos: Annotated[str, text(256, "The quality of service.")] = ""
    nodes: Annotated[
        str, text(LONGEST_NODES, "The nodes, such as gpu[1-2]; cut off with … if there are many.")
    ] = ""
    batch_host: Annotated[str, text(256, "The node where the script runs.")] = ""
    exit_code: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None,
        Meta(description="The script's exit code as sacct has it: 0 if Slurm ended it."),
    ] = None
    signal: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None,
        Meta(description="The signal that ended the script."),
    ] = None
    submit_time: Annotated[Moment | None, Meta(description="When Slurm took the job.")] = None
    expected_start: Annotated[
        Moment | None, Meta(description="When Slurm expects a job that waits to start.")
    ] = None
    start_time: Annotated[Moment | None, Meta(description="When it started.")] = None
    end_time: Annotated[Moment | None, Meta(description="When it ended.")] = None
    attempt: Annotated[
        Number, Meta(description="How many Slurm jobs there have been for this object.")
    ] = 0
    restarts: Annotated[
        Number, Meta(description="How often Slurm itself has requeued the job.")
    ] = 0
    array: Annotated[
        ArrayTasks | None, Meta(description="How the tasks stand; only of an array.")
    ] = None
    outputs: Annotated[JobOutputs | None, Meta(description="Where the job writes.")] = None
    results: Annotated[
        JobResults | None, Meta(description="What became of the results, once the job has ended.")
    ] = None
    observed_generation: Annotated[
        Number, Meta(description="The metadata.generation that this is about.")
    ] = 0
    conditions: Annotated[
        tuple[ObjectCondition, ...],
        Meta(
            max_length=MOST_CONDITIONS,
            description="Submitted, Running, Suspended, ResultsCollected, Complete, Failed.",
            extra_json_schema={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        ),
    ] = ()
