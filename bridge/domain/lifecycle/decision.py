"""Input and output of one decision."""

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.caps import DEFAULT, Caps
from bridge.domain.lifecycle.actions import Action
from bridge.domain.model.pods import Pod
from bridge.domain.observation.binding import BindFailure
from bridge.domain.observation.pace import REASONS_AFTER_S
from bridge.domain.observation.view import View
from slurmruntime.values.ids import JobId, KubeNode, SlurmNode


class Actor(enum.Enum):
    """The process that may act on a pod; so none has to guess what another one has in flight."""

    EXTENDER = "extender"
    CONTROLLERS = "controllers"


class Fit(enum.Enum):
    """Whether Kubernetes, by its own accounting, can take the pod on the node Slurm chose."""

    FITS = "fits"
    TERMINATING = "terminating"
    """Not yet: terminating pods still count. Slurm frees at once, containers use their grace
    period."""
    OUTLIVED = "outlived"
    """Not yet: pods whose job has ended still run, and nothing has evicted them."""
    UNHELD = "unheld"
    """Not yet: nothing shows that slurmctld's script holds native jobs back there."""
    MISFIT = "misfit"
    """No: submit again, avoiding that node for a while."""


class WhenFull(enum.StrEnum):
    """What happens to a pod for which its running gang has no slot."""

    OWN_JOB = "own-job"
    """It gets a placeholder of its own."""
    WAIT = "wait"
    """It waits until a member leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRefusal:
    """Slurm's latest refusal of a submit for this pod; in memory only, a new leader tries again."""

    attempts: int
    """How many in a row, at least 1."""
    at: datetime
    """When the last one came."""
    text: str
    """Slurm's message, or ours."""
    is_of_nodes: bool = False
    """No node suits the pod: other nodes would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinRefusal:
    """The API server refuses the patch that gives the pod its node, or its claims get no devices."""

    job_id: JobId
    """The placeholder the pod would have been placed by."""
    since: datetime
    tried_at: datetime
    """When the last attempt was refused."""
    text: str
    is_of_devices: bool = False
    """Slurm and the node do not agree on devices, or others still have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that one decision depends on."""

    pod: Pod
    view: View
    now: datetime
    since: datetime | None = None
    """When this process first saw the pod in this cell of the table (`dwell.TimeInState`); None
    means now, so no deadline applies."""
    kube_node: KubeNode | None = None
    """The Kubernetes node behind the running placeholder's Slurm node; None if unknown."""
    unbindable_since: datetime | None = None
    """Since when kube-scheduler has failed to bind this very pod; None: it has reported no failure,
    or it binds no pod at all."""
    fit: Fit | None = None
    """Examined only for a gated pod whose placeholder runs."""
    fit_text: str = ""
    """What does not fit, in words: `insufficient cpu (4 asked, 2 free)`."""
    shortfall: str = ""
    """In which resources Slurm granted less than the pod takes, in words; examined like `fit`."""
    released: SlurmNode | None = None
    """The pod's node, if its running placeholder has given it up, as two readings of Slurm show."""
    node_is_gone: bool = False
    """The bound pod's node was deleted, or is tainted out of service: its containers cannot run any
    more."""
    evictions_held: bool = False
    """The circuit breaker is open: too many pods would be evicted at once for what Slurm reports."""
    refusal: SubmitRefusal | None = None
    """Set from a refused submit until the next accepted one."""
    bind_failures: tuple[BindFailure, ...] = ()
    """Pods of the same controller that kube-scheduler could not bind lately."""
    nodes_changed_at: datetime | None = None
    """When a node was last added, removed, edited or registered; None: not since this process leads."""
    pin_refusal: PinRefusal | None = None
    """Set since the API server has refused the pin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """What decisions depend on; most is the same everywhere."""

    bind_deadline: timedelta = timedelta(minutes=2)
    start_deadline: timedelta = timedelta(minutes=30)
    kept_slots_deadline: timedelta | None = None
    """How long a started gang keeps slots for pods that are yet to be created; None: for ever."""
    restore_deadline: timedelta = timedelta(minutes=10)
    """How long a lost placeholder may wait to get its nodes back: longer than a restart of slurmctld takes."""
    caps: Caps = DEFAULT
    overtime: timedelta = timedelta(0)
    """Slurm's OverTimeLimit: how long a job may exceed its limit."""
    evict_suspended: bool = False
    tell_after: timedelta = timedelta(seconds=REASONS_AFTER_S)
    """How long a pod waits before its status explains why."""
    incomplete_after: timedelta = timedelta(minutes=1)
    """How long a gang's members may take to appear before anything is reported: their controller creates them one by one."""
    avoid_node: timedelta = timedelta(minutes=5)
    """How long new submits exclude a node that Kubernetes could not take: what a kubelet reports changes within minutes."""
    poll_interval: timedelta = timedelta(milliseconds=500)
    """How soon Slurm is read again: the retry for anything that only waits for that."""
    backoff_first: timedelta = timedelta(seconds=1)
    backoff_cap: timedelta = timedelta(minutes=5)
    """Between repeated submits for the same pod: first, doubled each time, up to the cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, in order, why in one sentence, and when to look again without an event."""

    actions: tuple[Action, ...]
    reason: str
    retry_after: timedelta | None = None
