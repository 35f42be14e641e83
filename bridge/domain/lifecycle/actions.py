"""The actions a decision may request.

`bridge.reconcile.actuator` and `bridge.reconcile.placeholder_writes` execute them.
"""

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from bridge.domain.workloads.workload import Workload
from slurmruntime.values.ids import JobId, KubeNode, PodUid, Sluid, SlurmNode, WorkloadKey


class Cause(enum.Enum):
    """Why a pod must go although it did not end by itself; the Event's and condition's reason."""

    CANCELLED = "SlurmCancelled"
    PREEMPTED = "SlurmPreempted"
    NODE_FAIL = "SlurmNodeFail"
    TIME_LIMIT = "SlurmTimeLimit"
    """The pod's own doing: no DisruptionTarget, it counts as a failure."""
    SUSPENDED = "SlurmSuspended"
    """Its user or an administrator suspended it, and the settings have its pods evicted then."""
    DEADLINE = "SlurmDeadline"
    NOT_BOUND = "SlurmBindDeadline"
    """kube-scheduler did not bind it in time although Slurm holds its node."""
    NOT_STARTED = "SlurmStartDeadline"
    """None of its containers started in time (an image that cannot be pulled …): it counts as a
    failure, or a Job would retry for ever."""
    RELEASED = "SlurmNodeReleased"
    """Its job was made smaller while it ran, and Slurm has given the pod's node to others."""
    LOST = "SlurmPlaceholderLost"
    """Slurm forgot the placeholder and gave its nodes to others."""
    MEMBER_FAILED = "GangMemberFailed"
    """Another member of its gang failed, and their template asks for all to end then."""
    INCOMPLETE = "GangIncomplete"
    """Slots were kept for pods of its gang that never came: it counts as a failure, or its
    controller would retry for ever."""
    ENDED = "SlurmJobEnded"
    """It ended in some other way (an administrator completed it by hand …)."""

    @property
    def is_disruption(self) -> bool:
        """True if it is not the pod's fault: a Job's podFailurePolicy may ignore it."""
        return self not in (Cause.TIME_LIMIT, Cause.NOT_STARTED, Cause.INCOMPLETE)

    @property
    def is_loss(self) -> bool:
        """True if it may be an accident: the circuit breaker counts these and holds them back.

        A wiped slurmctld, or a partition or node missing from its configuration, causes many of
        these at once. Every other cause is about this very job: its user, an administrator or a
        limit ended it.
        """
        return self in (Cause.NODE_FAIL, Cause.LOST)


class OwnCause(enum.StrEnum):
    """Why we cancelled a placeholder whose pod lives on; recorded in it, so its end is ours."""

    MISFIT = "misfit"
    """Kubernetes could not take the pod on the node: submit again, avoiding that node."""
    UNUSED = "unused"
    """Another controller's gate kept the pod from using it: submit again once that gate is gone."""
    RESIZED = "resized"
    """The gang has another size now, which requires a new job: submit again."""
    SHRUNK = "shrunk"
    """It was changed while it waited, and has less than the pod takes: submit again."""
    SPARE = "spare"
    """A second placeholder of one workload: its end means nothing for the pod."""
    NODE_REMOVED = "node removed"
    """The only node it could use leaves Slurm: submit again for the remaining ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the containers ended, as reported to Slurm: one field is set, or none for success."""

    exit_code: int = 0
    """1…255: FAILED n:0."""
    signal: int = 0
    """1…64: FAILED 0:n."""
    out_of_memory: bool = False
    timed_out: bool = False
    """TIMEOUT: the limit must have been reached, or Slurm turns it into COMPLETED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfJob:
    """An action on one placeholder, or that names one."""

    job_id: JobId
    sluid: Sluid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Submit a placeholder; after a lost reply, look for it by identity before any repetition."""

    avoid: tuple[SlurmNode, ...] = ()
    """Nodes that Kubernetes could not take a moment ago."""
    gang: Workload | None = None
    """All members it is for; None: the pod alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize(_OfJob):
    """Adapt a waiting placeholder to its gang's new size, as its user.

    So it keeps its place in the queue. If that requires a new job, or Slurm refuses it, the
    placeholder is cancelled with cause RESIZED: submit again.
    """

    gang: Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Label the pod with its placeholder's id and report Slurm's state on it, if that changed.

    The report is a condition and an Event.
    """

    job_id: JobId | None
    """None leaves the label alone. The write is guarded by `test` on uid and gate: a placed pod's
    label names the job that placed it, and a deposed leader that overwrites it would make the
    controllers cancel the true placeholder as a spare."""
    reason: str
    """CamelCase, the condition's reason."""
    message: str
    allocated: bool = False
    """The condition's status: True once a running placeholder holds the pod's node."""

    def note(self, known: JobId | None) -> str:
        """Return the Event's text; the first one that names a job also says that it was submitted.

        A separate Event for the submit would cost every pod a write, and pods that start at once
        report it soon enough.

        known: the job that the pod already reports; None if it reports none.
        """
        if self.job_id in (None, known):
            return self.message
        return f"submitted as Slurm job {self.job_id}. {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A gang member's place, as passed on by the downward API."""

    workload: WorkloadKey
    rank: int
    world_size: int
    nodelist: tuple[KubeNode, ...]
    """Its nodes in the order of their ranks, each once."""
    local_rank: int = 0
    """The place among its gang's on the node, by which devices and cores are divided there."""
    local_size: int = 1
    """How many places its gang has on the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(_OfJob):
    """Write job id, node and pin, and remove the gate, in one JSON patch guarded by uid and gate.

    From then on the controllers own the pod.
    """

    slurm_node: SlurmNode
    kube_node: KubeNode
    grant: str
    """The text of `names.GRANT_ANNOTATION`; "" if Slurm did not report enough."""
    place: Place | None = None
    """For a member of a gang."""
    waited: timedelta | None = None
    """How long its job has held the node while pods were still terminating there; reported and
    counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enlist(_OfJob):
    """Add members to the identity of a placeholder submitted without them.

    Always before they are assigned.
    """

    pods: tuple[PodUid, ...]
    alive: frozenset[PodUid]
    """Members that keep their entries. New members take the entries of others, and the recorded
    failures of those are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(_OfJob):
    """Record how a member failed while others keep running: its pod may be gone before theirs."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Replace a placeholder that Slurm lost: same nodes, for the time that is left.

    Once for all pods of a workload; like `Submit`, never repeated after a lost reply before
    looking.
    """

    lost: str
    """The lost one's SLUID or job id (`Pod.placed_by`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(_OfJob):
    """Write a lost placeholder's replacement on the pod, guarded by the lost one's id and SLUID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(_OfJob):
    """Cancel a placeholder; ids are reused, so the sluid, if known, is verified first."""

    cause: OwnCause | None = None
    """Set if the pod lives on. Then a GET of the pod (not from a cache) must first show that it was
    not placed by this very job meanwhile, and the cause is written into `admin_comment`
    (`Identity.cause`): the end is ours to handle."""
    misfits: tuple[SlurmNode, ...] = ()
    """With cause misfit: which of a gang's nodes did not fit; () means all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(_OfJob):
    """End a running placeholder with its pods' real outcome; recorded failures count as well."""

    outcome: Outcome
    is_on_record: bool = False
    """The outcome rests only on failures recorded in the identity: if those have been withdrawn,
    the placeholder is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimeLimit(_OfJob):
    """Change a running placeholder's time limit as root; record its true limit in the identity."""

    minutes: int
    true_min: int
    """The limit without our change; nothing is recorded if both are equal."""
    expected_min: int
    """Act only while Slurm still shows this one: an administrator's change stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Patch the cause into the status, then DELETE with a uid precondition, and send an Event.

    The cause is a DisruptionTarget, or our own condition if the pod is to blame: it shows later how
    the job ended. The placeholder does not end with the pod's eviction, but only when the pod's
    containers are gone.
    """

    cause: Cause
    message: str
    if_unchanged: bool = False
    """Only this very version of the pod (resourceVersion): it may have been bound meanwhile."""
    grace_s: int | None = None
    """Replaces a grace period of the pod that exceeds the cap; None keeps the pod's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shorten:
    """DELETE a pod that is being deleted once more, with a shorter grace period; send an Event."""

    event: ClassVar = "GraceShortened"
    """The Event's reason."""

    grace_s: int
    """At least 1: with 0 the API server would forget the pod while its containers run."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPod:
    """End a pod that never got a node by one status patch: phase Failed and DisruptionTarget.

    Deleting it would use up the backoffLimit. Guarded by the resourceVersion that was decided on:
    another leader may have placed it meanwhile.
    """

    cause: Cause
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """Set DisruptionTarget on a pod that failed for no fault of its own (status)."""

    cause: Cause
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Remove our finalizer: nothing of this pod is left in Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Do nothing until something changes or the decision's retry time comes."""


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
    | Shorten
    | EndPod
    | Excuse
    | Release
    | Wait
)
