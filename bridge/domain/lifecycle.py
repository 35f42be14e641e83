"""THE machine: what to do for one pod, given what Kubernetes says of it and what Slurm surely says of its placeholder.

Pure and level-triggered: no phase is stored, all is derived, and the same facts give the same decision. Rows are the
pod's situation, columns the placeholder's (`docs/lifecycle.md` is generated from the table).
"""

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.actions import Action
from bridge.domain.ids import KubeNode
from bridge.domain.jobs import SlurmJob
from bridge.domain.pods import Pod


class Actor(enum.Enum):
    """Which process may act on a row; so nobody has to guess what another one has in flight."""

    EXTENDER = "extender"
    CONTROLLERS = "controllers"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What Slurm says of one workload's placeholders."""

    jobs: tuple[SlurmJob, ...] = ()
    """Every job found *in Slurm* with this workload's identity, ended ones too while Slurm remembers them."""
    fresh: bool = False
    """Read after our last write about this workload; what cannot be taken back waits for that."""
    surely_none: bool = False
    """No live one in two reads in a row, both begun after our last write, the quiet period over."""
    reachable: bool = True
    """False: the last read failed or made no sense; then nothing is concluded."""


class Fit(enum.Enum):
    """Whether Kubernetes can take the pod on the node Slurm chose, by its own books."""

    FITS = "fits"
    TERMINATING = "terminating"
    """Not yet: pods that are going away still count. Slurm frees at once, containers take their grace."""
    MISFIT = "misfit"
    """Not at all: submit again, avoiding that node for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything one decision looks at."""

    pod: Pod
    view: View
    now: datetime
    kube_node: KubeNode | None = None
    """The Kubernetes node behind the running placeholder's Slurm node; None if nobody knows it."""
    fit: Fit | None = None
    """Only asked for a gated pod whose placeholder runs."""
    fit_text: str = ""
    node_is_gone: bool = False
    """The bound pod's node was deleted, or is tainted out of service: its containers cannot run any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings that decisions depend on."""

    bind_deadline: timedelta = timedelta(minutes=2)
    restore_deadline: timedelta = timedelta(minutes=10)
    tell_after: timedelta = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, in order, why in one sentence, and when to look again without an event."""

    actions: tuple[Action, ...]
    reason: str
    retry_after: timedelta | None = None


def actor(pod: Pod) -> Actor:
    """Who owns this pod: the extender's leader while our gate is on, its deletion included; then the controllers'."""
    return Actor.EXTENDER if pod.is_gated else Actor.CONTROLLERS


def decide(facts: Facts, policy: Policy) -> Decision:
    """Say what to do next for this pod."""
    raise NotImplementedError
