"""The fields of `status`. Each has a bound, so that a status never exceeds a few tens of kilobytes."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmjobs.objects.results import JobResults
from slurmruntime.crd.conditions import LONGEST_MESSAGE, MOST_CONDITIONS, Number, ObjectCondition
from slurmruntime.crd.fields import Moment, ObjectStruct, text

LONGEST_NODES: Final = 1024

JobPhase = Literal["Pending", "Running", "Succeeded", "Failed"]
"""The phases that tools written for pods know."""


class ArrayTasks(ObjectStruct, frozen=True):
    """The tasks of an array, by state."""

    total: Annotated[Number, Meta(description="All tasks.")] = 0
    pending: Annotated[Number, Meta(description="Waiting tasks.")] = 0
    running: Annotated[Number, Meta(description="Running tasks.")] = 0
    succeeded: Annotated[Number, Meta(description="Tasks that ended well.")] = 0
    failed: Annotated[Number, Meta(description="Tasks that ended otherwise.")] = 0
    unknown: Annotated[
        Number,
        Meta(
            description="Tasks whose end was not seen; slurmdbd is asked about them when the array ends."
        ),
    ] = 0
    failed_tasks: Annotated[
        str, text(1024, "The failed tasks, such as 3,17-20; cut off with … if there are many.")
    ] = ""


class JobOutputs(ObjectStruct, frozen=True):
    """The files that the job writes."""

    stdout: Annotated[str, text(4096, "Path of the standard output on the cluster.")] = ""
    stderr: Annotated[str, text(4096, "Path of the standard error on the cluster.")] = ""
    directory: Annotated[str, text(4096, "The job's working directory on the cluster.")] = ""


class SlurmJobStatus(ObjectStruct, frozen=True):
    """The state of the SlurmJob; written only by slurm-bridge."""

    phase: Annotated[
        JobPhase | None,
        Meta(
            description="Pending, Running, Succeeded or Failed, as for pods; cancelled jobs are Failed."
        ),
    ] = None
    job_id: Annotated[
        Annotated[int, Meta(ge=1, le=2**32 - 1)] | None,
        Meta(description="Id of the Slurm job; for an array, the array's id."),
    ] = None
    sluid: Annotated[str, text(64, "Slurm's id of the job that is never reused.")] = ""
    state: Annotated[str, text(256, "The job's state in Slurm, such as PENDING or RUNNING.")] = ""
    reason: Annotated[
        str, text(256, "Slurm's reason while the job waits, slurm-bridge's once it has ended.")
    ] = ""
    message: Annotated[
        str, text(LONGEST_MESSAGE, "What is happening, and what you can do about it.")
    ] = ""
    user: Annotated[str, text(256, "The job's Slurm user.")] = ""
    uid: Annotated[Number | None, Meta(description="The user's uid in Slurm.")] = None
    gid: Annotated[Number | None, Meta(description="The group's gid in Slurm.")] = None
    account: Annotated[str, text(256, "The account that the job is charged to.")] = ""
    partition: Annotated[str, text(1024, "The partition.")] = ""
    qos: Annotated[str, text(256, "The quality of service.")] = ""
    nodes: Annotated[
        str, text(LONGEST_NODES, "The nodes, such as gpu[1-2]; cut off with … if there are many.")
    ] = ""
    batch_host: Annotated[str, text(256, "The node where the script runs.")] = ""
    exit_code: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None,
        Meta(description="The script's exit code as shown by sacct; 0 if Slurm ended the job."),
    ] = None
    signal: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None,
        Meta(description="The signal that ended the script."),
    ] = None
    submit_time: Annotated[Moment | None, Meta(description="When Slurm accepted the job.")] = None
    expected_start: Annotated[
        Moment | None, Meta(description="When Slurm expects a waiting job to start.")
    ] = None
    start_time: Annotated[Moment | None, Meta(description="When it started.")] = None
    end_time: Annotated[Moment | None, Meta(description="When it ended.")] = None
    attempt: Annotated[Number, Meta(description="How many Slurm jobs this object has had.")] = 0
    restarts: Annotated[Number, Meta(description="How often Slurm has requeued the job.")] = 0
    array: Annotated[
        ArrayTasks | None, Meta(description="The tasks by state; only for an array.")
    ] = None
    outputs: Annotated[JobOutputs | None, Meta(description="The files that the job writes.")] = None
    results: Annotated[
        JobResults | None,
        Meta(description="The state of copying the results, once the job has ended."),
    ] = None
    observed_generation: Annotated[
        Number, Meta(description="The metadata.generation that this status is about.")
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
