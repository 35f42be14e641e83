"""The fields we read of slurmrestd's JSON, identical in data parsers v0.0.43 to v0.0.45.

The API declares no field as required, sometimes writes null for an empty list, and represents an
optional number as `{"set", "infinite", "number"}`.
Reference: <https://slurm.schedmd.com/rest_api.html>.
"""

import msgspec
from msgspec import Struct, field

from slurmclient.watching.slurmctld import Configuration, Diagnosis, Statistics
from slurmclient.wire.reading import Answer
from slurmclient.wire.values import NOT_SET as NONE
from slurmclient.wire.values import OptionalNumber as Number

__all__ = ["NONE", "Configuration", "Diagnosis", "Number", "Statistics"]


class StepId(Struct, frozen=True):
    """The id of a job's step; since v0.0.44."""

    sluid: str = ""


class Signal(Struct, frozen=True):
    """A signal's number and name."""

    id: Number = NONE


class ExitCode(Struct, frozen=True):
    """A decoded wait status."""

    return_code: Number = NONE
    signal: Signal = Signal()


class Cpus(Struct, frozen=True):
    """CPUs allocated on a node."""

    count: int = 0


class Memory(Struct, frozen=True):
    """MiB allocated on a node."""

    allocated: int = 0


class NodeAllocation(Struct, frozen=True):
    """A job's allocation on one node; only in responses with the detail."""

    name: str
    cpus: Cpus = Cpus()
    memory: Memory = Memory()
    sockets: msgspec.Raw = msgspec.Raw(b"[]")
    """Each core of the node, decoded only where it is needed (`CoreSocket`)."""


class Core(Struct, frozen=True):
    """A core of a job's node."""

    index: int
    status: list[str] = field(default_factory=list)
    """ALLOCATED, or UNALLOCATED."""


class CoreSocket(Struct, frozen=True):
    """A socket of a job's node, with all its cores."""

    index: int
    cores: list[Core] = field(default_factory=list)


class Allocations(Struct, frozen=True):
    """A job's allocations by node, in Slurm's order."""

    allocation: list[NodeAllocation] | None = None


class JobResources(Struct, frozen=True):
    """Resources of a running job."""

    nodes: Allocations | None = None


class _JobRecord(Struct, frozen=True):
    job_id: int
    job_state: list[str] = field(default_factory=list)
    step_id: StepId = StepId()
    admin_comment: str = ""
    state_reason: str = ""
    state_description: str = ""
    priority: Number = NONE
    user_name: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    nodes: str = ""
    submit_time: Number = NONE
    start_time: Number = NONE
    end_time: Number = NONE
    exit_code: ExitCode = ExitCode()


class Job(_JobRecord, frozen=True):
    """A job of GET /job/{id}; the response for a het leader has all components."""

    flags: list[str] = field(default_factory=list)
    required_nodes: str = ""
    excluded_nodes: str = ""
    het_job_id: Number = NONE
    """The leader's id, for a component."""
    het_job_offset: Number = NONE
    tasks: Number = NONE
    cpus_per_task: Number = NONE
    memory_per_cpu: Number = NONE
    tres_per_task: str = ""
    job_resources: JobResources | None = None
    gres_detail: list[str] = field(default_factory=list)
    """`gpu:a100:2(IDX:0-1)` for each node that has GRES, in order; several kinds with commas."""
    time_limit: Number = NONE
    name: str = ""
    group_name: str = ""
    resv_name: str = ""
    wckey: str = ""
    licenses: str = ""
    mcs_label: str = ""
    node_count: Number = NONE
    cpus: Number = NONE
    memory_per_node: Number = NONE
    tres_per_node: str = ""
    tres_alloc_str: str = ""
    """What a running job has: `cpu=8,mem=16G,node=1,billing=8`."""


class JobName(Struct, frozen=True):
    """The part of a record that identifies the job."""

    job_id: int
    step_id: StepId = StepId()


class ArrayRecord(Struct, frozen=True):
    """The part of a record that identifies its array; for any job, ours or not."""

    array_job_id: Number = NONE


class BatchRecord(_JobRecord, frozen=True):
    """The fields read of a SlurmJob's job in GET /job/{id}; a task of an array has a record of its own once it has started."""

    array_job_id: Number = NONE
    array_task_id: Number = NONE
    array_task_string: str = ""
    """The tasks of an array that have no record of their own yet: `4-99%10`."""
    restart_cnt: int = 0
    user_id: int | None = None
    group_id: int | None = None
    batch_host: str = ""
    current_working_directory: str = ""
    stdout_expanded: str = ""
    stderr_expanded: str = ""
    derived_exit_code: ExitCode = ExitCode()


class Jobs(Answer, frozen=True):
    """GET /job/{id}; each of `jobs` is a `Job`, decoded one by one."""

    jobs: list[msgspec.Raw] | None = None


class KillError(Struct, frozen=True):
    """Slurm's error number and text."""

    code: int = 0
    message: str = ""


class KillStatus(Struct, frozen=True):
    """Result of cancelling one job."""

    error: KillError = KillError()


class KillAnswer(Answer, frozen=True):
    """DELETE /job/{id}: an empty `status` means success; HTTP 200 alone does not."""

    status: list[KillStatus] | None = None


class Node(Struct, frozen=True):
    """A node of GET /nodes/ and GET /node/{name}."""

    name: str
    state: list[str] = field(default_factory=list)
    cpus: int = 0
    effective_cpus: int = 0
    real_memory: int = 0
    specialized_memory: int = 0
    features: list[str] = field(default_factory=list)
    gres: str = ""
    address: str = ""
    alloc_cpus: int = 0
    alloc_memory: int = 0
    reason: str = ""
    reason_set_by_user: str = ""
    reason_changed_at: Number = NONE
    reservation: str = ""
    partitions: list[str] = field(default_factory=list)
    topology: str = ""
    weight: int = 1
    threads: int = 1


class Nodes(Answer, frozen=True):
    """GET /nodes/ and GET /node/{name}; without `nodes` if the name is unknown."""

    nodes: list[Node] | None = None
    last_update: Number = NONE
    """Time of the response, by slurmctld's clock."""


class Reservation(Struct, frozen=True):
    """A reservation of GET /reservations/."""

    name: str = ""
    node_list: str = ""
    flags: list[str] = field(default_factory=list)
    start_time: Number = NONE
    end_time: Number = NONE


class Reservations(Answer, frozen=True):
    """GET /reservations/."""

    reservations: list[Reservation] | None = None


class AccountingTime(Struct, frozen=True):
    """Unix times; 0 means not yet."""

    submission: int = 0
    start: int = 0
    end: int = 0
    limit: Number = NONE


class AccountingArray(Struct, frozen=True):
    """The place of a job in an array; 0 and not set of any other job."""

    job_id: int = 0
    task_id: Number = NONE
    task: str = ""
    """The tasks of a record that has several: `4-99`."""


class AccountingState(Struct, frozen=True):
    """Base state and flags."""

    current: list[str]


class AccountingRecord(Struct, frozen=True):
    """slurmdbd's record of a job; it lacks `admin_comment` until the job ends."""

    state: AccountingState
    time: AccountingTime
    sluid: str = ""
    """Since v0.0.45."""
    kill_request_user: str = ""


class BatchComment(Struct, frozen=True):
    """A job's comments in slurmdbd."""

    administrator: str = ""


class BatchAccountingRecord(Struct, frozen=True):
    """slurmdbd's record of a batch job; its mark is only there once the job has ended."""

    job_id: int
    state: AccountingState
    time: AccountingTime
    sluid: str = ""
    comment: BatchComment = BatchComment()
    exit_code: ExitCode = ExitCode()
    derived_exit_code: ExitCode = ExitCode()
    kill_request_user: str = ""
    restart_cnt: int = 0
    nodes: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    working_directory: str = ""
    stdout_expanded: str = ""
    stderr_expanded: str = ""
    array: AccountingArray = AccountingArray()


class BatchAccountedJobs(Answer, frozen=True):
    """GET /slurmdb/…/jobs and /job/{ref}."""

    jobs: list[BatchAccountingRecord] | None = None


class AccountingRecords(Answer, frozen=True):
    """GET /slurmdb/…/job/{ref}: an empty list and a warning if the job is unknown."""

    jobs: list[AccountingRecord] | None = None
