"""slurmrestd's JSON, only the fields we read, alike in data parsers v0.0.43 to v0.0.45.

The API declares no field as required, writes null for an empty list at times, and says numbers that may be absent as
`{"set", "infinite", "number"}`. Reference: <https://slurm.schedmd.com/rest_api.html>.
"""

from typing import Annotated

import msgspec
from msgspec import Struct, field


class Number(Struct, frozen=True):
    """A number that may be absent or without limit; an answer often says `set` and 0 where it means "none"."""

    set: bool = False
    infinite: bool = False
    number: float = 0

    @property
    def positive(self) -> int | None:
        """The number if there is one above 0."""
        return int(self.number) if self.set and not self.infinite and self.number > 0 else None


NONE = Number()


class Problem(Struct, frozen=True):
    """One of `errors`: `error` is Slurm's text for the number, `description` is slurmrestd's."""

    description: str = ""
    error_number: int = 0
    error: str = ""


class Remark(Struct, frozen=True):
    """One of `warnings`; some of them are refusals."""

    description: str = ""
    source: str = ""


class Answer(Struct, frozen=True):
    """What every answer may have. `job_id` is here because a refusal that has one was none."""

    errors: list[Problem] | None = None
    warnings: list[Remark] | None = None
    job_id: int | None = None


class JobState(Struct, frozen=True):
    """`job_id` is text: `7`, `21+1` for a component of a het job, `7_3` for a task of an array."""

    job_id: str
    state: list[str]


class States(Answer, frozen=True):
    """GET /jobs/state/; `jobs` is a list of `JobState`, or null, left unread: most answers repeat the last one."""

    jobs: msgspec.Raw = msgspec.Raw(b"null")


class StepId(Struct, frozen=True):
    """Since v0.0.44."""

    sluid: str = ""


class Signal(Struct, frozen=True):
    """A signal's number and name."""

    id: Number = NONE


class ExitCode(Struct, frozen=True):
    """A wait status, taken apart."""

    return_code: Number = NONE
    signal: Signal = Signal()


class Cpus(Struct, frozen=True):
    """CPUs allocated on a node."""

    count: int = 0


class Memory(Struct, frozen=True):
    """MiB allocated on a node."""

    allocated: int = 0


class NodeAllocation(Struct, frozen=True):
    """What a job has on one node; only where the answer has the detail."""

    name: str
    cpus: Cpus = Cpus()
    memory: Memory = Memory()


class Allocations(Struct, frozen=True):
    """By node, in Slurm's order."""

    allocation: list[NodeAllocation] | None = None


class JobResources(Struct, frozen=True):
    """What a running job has."""

    nodes: Allocations | None = None


class Job(Struct, frozen=True):
    """One of GET /job/{id}: a het leader's answer has all components."""

    job_id: int
    job_state: list[str] = field(default_factory=list)
    step_id: StepId = StepId()
    flags: list[str] = field(default_factory=list)
    admin_comment: str = ""
    state_reason: str = ""
    state_description: str = ""
    nodes: str = ""
    required_nodes: str = ""
    excluded_nodes: str = ""
    het_job_id: Number = NONE
    """Of a component: its leader's id."""
    het_job_offset: Number = NONE
    tasks: Number = NONE
    cpus_per_task: Number = NONE
    memory_per_cpu: Number = NONE
    tres_per_task: str = ""
    job_resources: JobResources | None = None
    gres_detail: list[str] = field(default_factory=list)
    """`gpu:a100:2(IDX:0-1)` for each node that has some, in their order; several kinds with commas."""
    priority: Number = NONE
    submit_time: Number = NONE
    start_time: Number = NONE
    end_time: Number = NONE
    time_limit: Number = NONE
    exit_code: ExitCode = ExitCode()
    name: str = ""
    user_name: str = ""
    group_name: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    resv_name: str = ""
    wckey: str = ""
    licenses: str = ""
    mcs_label: str = ""
    node_count: Number = NONE
    cpus: Number = NONE
    memory_per_node: Number = NONE
    tres_per_node: str = ""


class Jobs(Answer, frozen=True):
    """GET /job/{id}; each of `jobs` is a `Job`, decoded one by one (`bridge.slurm.lenient`)."""

    jobs: list[msgspec.Raw] | None = None


class KillError(Struct, frozen=True):
    """Slurm error number and text."""

    code: int = 0
    message: str = ""


class KillStatus(Struct, frozen=True):
    """What became of one job that was to be cancelled."""

    error: KillError = KillError()


class Killed(Answer, frozen=True):
    """DELETE /job/{id}: empty `status` is success, HTTP 200 is not."""

    status: list[KillStatus] | None = None


class Node(Struct, frozen=True):
    """One of GET /nodes/ and GET /node/{name}."""

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
    """GET /nodes/ and GET /node/{name}; no `nodes` at all where the name is unknown."""

    nodes: list[Node] | None = None
    last_update: Number = NONE
    """By slurmctld's clock, when it answered."""


class Version(Struct, frozen=True):
    """The first two parts of `26.05.5`: digits."""

    major: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,4}$")]
    minor: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,4}$")]


class Slurm(Struct, frozen=True):
    """slurmrestd's own release, not slurmctld's."""

    version: Version


class Meta(Struct, frozen=True):
    """Who answered."""

    slurm: Slurm


class Ping(Struct, frozen=True):
    """GET /ping/: answered with 200 whether slurmctld is up or not."""

    meta: Meta


class Statistics(Struct, frozen=True):
    """`req_time_start` is when slurmctld started, or last set its counters to zero (daily, at midnight UTC)."""

    req_time_start: Number = NONE
    dbd_agent_queue_size: int = 0
    """What slurmctld has yet to tell slurmdbd."""


class Diagnosis(Answer, frozen=True):
    """GET /diag/."""

    statistics: Statistics = Statistics()


class Numbers(Struct, frozen=True):
    """Of slurm.conf."""

    last_job_id: int = field(name="MaxJobId", default=0)


class NumbersMeta(Struct, frozen=True):
    """What `scontrol show config` tells besides."""

    next_job_id: Number = field(name="NEXT_JOB_ID", default=NONE)


class Configuration(Answer, frozen=True):
    """GET /conf, since v0.0.45."""

    slurm_conf: Numbers = Numbers()
    slurm_conf_meta: NumbersMeta = NumbersMeta()


class AccountedTime(Struct, frozen=True):
    """Unix times; 0 is not yet."""

    start: int = 0
    end: int = 0
    limit: Number = NONE


class AccountedState(Struct, frozen=True):
    """Base state and flags."""

    current: list[str]


class Accounted(Struct, frozen=True):
    """slurmdbd's record of a job; `admin_comment` is not among it before the end."""

    state: AccountedState
    time: AccountedTime
    kill_request_user: str = ""


class AccountedJobs(Answer, frozen=True):
    """GET /slurmdb/…/job/{ref}: an empty list and a warning where nothing is known."""

    jobs: list[Accounted] | None = None


class Paths(Struct, frozen=True):
    """GET /openapi/v3: which paths the server has."""

    paths: dict[str, object]
