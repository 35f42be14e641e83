"""What a decision may ask for, as values. `bridge.reconcile.actuator` carries them out and decides nothing."""

import enum
from dataclasses import dataclass

from bridge.domain.ids import JobId, KubeNode, PodUid, Sluid, SlurmNode, WorkloadKey
from bridge.domain.workloads.workload import Workload


class Cause(enum.Enum):
    """Why a pod has to go although it did not end by itself; also the Event's and the condition's reason."""

    CANCELLED = "SlurmCancelled"
    PREEMPTED = "SlurmPreempted"
    NODE_FAIL = "SlurmNodeFail"
    TIME_LIMIT = "SlurmTimeLimit"
    """The pod's own doing: no DisruptionTarget, it counts as a failure."""
    SUSPENDED = "SlurmSuspended"
    """An administrator suspended it, and the settings say that its pods go then."""
    DEADLINE = "SlurmDeadline"
    NOT_BOUND = "SlurmBindDeadline"
    """kube-scheduler did not bind it in time although Slurm holds its node."""
    NOT_STARTED = "SlurmStartDeadline"
    """No container of it started in time (an image that cannot be pulled …): it counts as a failure, or a Job would try
    for ever."""
    LOST = "SlurmPlaceholderLost"
    """Slurm forgot the placeholder and gave its nodes to others."""
    MEMBER_FAILED = "GangMemberFailed"
    """Another member of its gang failed, and their template says that all end then."""
    INCOMPLETE = "GangIncomplete"
    """Slots were kept for pods of its gang that never came: it counts as a failure, or its controller would try for ever."""
    ENDED = "SlurmJobEnded"
    """It ended some other way (an administrator completed it by hand …)."""

    @property
    def is_disruption(self) -> bool:
        """Not the pod's fault: a Job's podFailurePolicy may ignore it."""
        return self not in (Cause.TIME_LIMIT, Cause.NOT_STARTED, Cause.INCOMPLETE)

    @property
    def is_on_slurms_word(self) -> bool:
        """Nothing about the pod itself: what the circuit breaker counts and holds back."""
        return self in _ON_SLURMS_WORD


_ON_SLURMS_WORD = frozenset(
    {
        Cause.CANCELLED,
        Cause.PREEMPTED,
        Cause.NODE_FAIL,
        Cause.DEADLINE,
        Cause.LOST,
        Cause.ENDED,
    }
)


class OwnCause(enum.StrEnum):
    """Why we cancelled a placeholder whose pod lives on: recorded in it, so that its end is ours to answer."""

    MISFIT = "misfit"
    """Kubernetes could not take the pod on the node: submit again, avoiding that node."""
    UNUSED = "unused"
    """Another controller's gate kept the pod from using it: submit again when that gate is gone."""
    RESIZED = "resized"
    """The gang has another size now, which takes another job: submit again."""
    SPARE = "spare"
    """A second placeholder of one workload: its end says nothing about the pod."""
    NODE_REMOVED = "node removed"
    """The only node it could go to leaves Slurm: submit again for those that are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the containers ended, as Slurm is told: exactly one of the four, or all unset for success."""

    exit_code: int = 0
    """1…255: FAILED n:0."""
    signal: int = 0
    """1…64: FAILED 0:n."""
    out_of_memory: bool = False
    timed_out: bool = False
    """TIMEOUT: the limit has been reached, or Slurm makes COMPLETED of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Submit a placeholder; never repeated after a lost reply before looking for it by identity."""

    avoid: tuple[SlurmNode, ...] = ()
    """Nodes that Kubernetes could not take a moment ago."""
    gang: Workload | None = None
    """All that it is for; None: the pod alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Have a waiting placeholder ask for what its gang needs by now, as its user: so it keeps its place in the queue.

    Where that takes another job, or Slurm refuses it, the placeholder is cancelled with cause RESIZED: submit again.
    """

    job_id: JobId
    sluid: Sluid | None
    gang: Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Label the pod with its placeholder's id and say on it (condition, Event) what Slurm thinks; on change only."""

    job_id: JobId | None
    """None leaves the label alone. To write it is guarded by `test` on uid and gate: a placed pod's label says what it
    was placed by, and a deposed leader that spoils it makes the controllers cancel the true placeholder as a spare."""
    reason: str
    """CamelCase, the condition's reason."""
    message: str
    allocated: bool = False
    """The condition's status: True once a running placeholder holds the pod's node."""

    def note(self, known: JobId | None) -> str:
        """Say it in an Event; the first one that names a job says besides that it was submitted.

        An Event of its own for the submit would cost every pod a write, and those that start at once are told soon enough.

        Args:
            known: the job the pod was told of before.
        """
        if self.job_id in (None, known):
            return self.message
        return f"submitted as Slurm job {self.job_id}. {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a member of a gang is told of its place, for the downward API."""

    workload: WorkloadKey
    rank: int
    world_size: int
    nodelist: tuple[KubeNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    """One JSON patch: job id, node, pin, gate removed; guarded by uid and gate. From then on the controllers own the pod."""

    job_id: JobId
    sluid: Sluid | None
    slurm_node: SlurmNode
    kube_node: KubeNode
    grant: str
    """The text of `names.GRANT_ANNOTATION`; "" where Slurm did not say enough."""
    place: Place | None = None
    """Of a member of a gang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enlist:
    """Write members into the identity of a placeholder that was submitted without them; always before they are assigned."""

    job_id: JobId
    sluid: Sluid | None
    pods: tuple[PodUid, ...]
    alive: frozenset[PodUid]
    """Members that keep their entries; those of others are taken, and how these had failed is forgotten with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Write down how a member failed while others run on: its pod may be gone before they are."""

    job_id: JobId
    sluid: Sluid | None
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Submit a placeholder in the place of the one Slurm lost, on the pods' very nodes, for the time that is left.

    Once for all pods of a workload; like `Submit` never repeated after a lost reply before looking.
    """

    lost: str
    """What named it (`Pod.placed_by`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Write the placeholder that stands in for the lost one on the pod; guarded by the lost one's id and SLUID."""

    job_id: JobId
    sluid: Sluid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Cancel a placeholder; ids are re-used, so the sluid is verified first when it is known."""

    job_id: JobId
    sluid: Sluid | None
    cause: OwnCause | None = None
    """Set where the pod lives on. Then, first, a GET of the pod (not from a cache) has to show that it was not placed
    by this very job meanwhile, and the cause is written into `admin_comment` (`Identity.cause`): the end is ours to
    answer."""
    misfits: tuple[SlurmNode, ...] = ()
    """With cause misfit, which of a gang's nodes it was; () all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """End a running placeholder with its pods' real outcome; failures recorded in its identity count as well."""

    job_id: JobId
    sluid: Sluid | None
    outcome: Outcome
    is_on_record: bool = False
    """Only for failures that the placeholder's identity records: where those have been taken back, it is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimeLimit:
    """Change a running placeholder's time limit as root, and record in its identity what it is without us."""

    job_id: JobId
    sluid: Sluid | None
    minutes: int
    """What Slurm is told."""
    true_min: int
    """What it is without us; nothing is recorded where that is the same."""
    expected_min: int
    """Only if Slurm still shows this one: an administrator's change stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Status patch with the cause, then DELETE with uid precondition and an Event.

    The cause is a DisruptionTarget, or our own condition where the pod is to blame: it says later how the job ended.
    The placeholder is not ended with it: that follows when the pod's containers are gone.
    """

    cause: Cause
    message: str
    if_unchanged: bool = False
    """Only the very version of the pod that was decided on (resourceVersion): it may be bound by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPod:
    """End a pod that never got a node by one status patch: phase Failed and DisruptionTarget; deleting it would burn backoffLimit.

    Guarded by the resourceVersion that was decided on: another leader may have placed it meanwhile.
    """

    cause: Cause
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Remove our finalizer: nothing of this pod's is left in Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing to do until something changes or the decision's retry time comes."""


Action = (
    Submit
    | Resize
    | Tell
    | Enlist
    | Assign
    | Record
    | Restore
    | Adopt
    | Cancel
    | Complete
    | SetTimeLimit
    | Evict
    | EndPod
    | Release
    | Wait
)
