"""The workload that a pod belongs to, and the protocols that a kind of workload implements.

Every kind is a file in `kinds` and implements `Kind`. What only some kinds have an opinion on is a
protocol of its own with one member (`KindWithSize`, `KindWithRanks` …): a kind that does not
implement it gets the default.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

from bridge.domain.model.demand import Demand
from bridge.domain.model.pods import Pod
from slurmruntime.model.objects import KubeObject, Reference
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import WorkloadKey, alone_key

POD = "Pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The workload that one pod belongs to."""

    kind: str
    """As people know it, and as in its placeholder's identity: Job, PodGroup, MPIJob …"""
    namespace: str
    name: str
    """For people: the name of the Job, the JobSet, the group."""
    key: WorkloadKey
    """The workload's uid, as in its placeholder's identity. A group without a uid of its own is
    identified by name: its incarnations are told apart by their pods."""
    by: "Kind | None" = field(default=None, repr=False, compare=False)
    """The kind that claims the pod; None for a pod that is alone or placed already."""
    rank: tuple[int, ...] = ()
    """Its place among the members; those without one come last, sorted by name."""
    declared_by: Reference | None = None
    """The object that declares the group's size: a PodGroup, or an owner."""
    root: KubeObject | None = None
    """That owner, as it was when the pod was new."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the claim; if anything is, the pod is placed neither with others nor
    alone."""
    held_as: str = ""
    """The condition's reason, if the fault may be corrected while the pod waits: it is checked again."""

    @property
    def is_gang(self) -> bool:
        """True if several pods share one placeholder."""
        return self.kind != POD

    @property
    def index(self) -> int | None:
        """Its rank if that is a single number."""
        return self.rank[0] if len(self.rank) == 1 else None


class Size(NamedTuple):
    """The number of members of a workload."""

    slots: int
    """How many there will be, as far as declared."""
    needed: int
    """How many must be here before it is submitted."""
    faults: tuple[Fault, ...] = ()
    is_exact: bool = True
    """There will be no more than that."""


class KindRow(NamedTuple):
    """A kind's line in docs/workloads.md."""

    kind: str
    default: str
    size: str


class GetRule(NamedTuple):
    """Kinds of object to read for a kind of workload: with `get` only, as none is watched."""

    group: str
    resources: tuple[str, ...]


class ExclusiveTopology(NamedTuple):
    """How a controller keeps a group in a topology domain that it shares with no other group."""

    annotation: str
    """Names the node label whose value identifies a domain."""
    labels: frozenset[str]
    """Pod labels by which the controller keeps a group together and others away."""


class Kind(Protocol):
    """What every kind of workload provides."""

    @property
    def row(self) -> KindRow:
        """Its row in the documentation."""

    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Return the workload of this kind that a pod belongs to; None if there is none.

        owners: its controllers as far as they can be read, the nearest first.
        """


@runtime_checkable
class KindWithObjects(Kind, Protocol):
    """A kind that reads objects: the chart grants the rights."""

    @property
    def reads(self) -> tuple[GetRule, ...]:
        """The objects that are read."""


@runtime_checkable
class KindWithSize(Kind, Protocol):
    """A kind that knows how many members there will be; for others the present ones are all."""

    def size(self, member: Membership, pods: Sequence[Pod], declared: KubeObject | None, /) -> Size:
        """Return how many members there are.

        Args:
            member: the first in rank order.
            pods: all that are here, in rank order; at least one.
            declared: the object that declares them, as it is now or was last seen; None if it
                cannot be read.
        """


@runtime_checkable
class KindWithDeclaration(Kind, Protocol):
    """A kind whose claim only holds if an object that the pod names agrees."""

    def is_gang(self, declared: KubeObject | None, /) -> bool:
        """Check whether the object makes its pods a gang; wait if there is none yet (None)."""


@runtime_checkable
class KindWithRanks(Kind, Protocol):
    """A kind whose controller numbers its pods.

    The numbers also count if something else groups the pods.
    """

    def rank(self, pod: Pod, /) -> tuple[int, ...]:
        """Return the pod's place; () if it has no such number."""


@runtime_checkable
class KindWithSlots(Kind, Protocol):
    """A kind whose members each want the slot with their own number."""

    def slot(self, member: Membership, /) -> int | None:
        """Return the slot; None if any will do."""


@runtime_checkable
class KindWithLaterMembers(Kind, Protocol):
    """A kind that creates some members only when others run; they may differ in demand."""

    def later(self, declared: KubeObject | None, /) -> Demand | None:
        """Return the demand of each later member; None: the same as that of the present ones."""


@runtime_checkable
class KindWithExclusiveTopology(Kind, Protocol):
    """A kind whose controller supports exclusive topology."""

    @property
    def exclusive(self) -> ExclusiveTopology:
        """How it is requested."""


def alone(pod: Pod, faults: Sequence[Fault] = ()) -> Membership:
    """Make a workload of a single pod."""
    return Membership(
        kind=POD,
        namespace=pod.namespace,
        name=pod.name,
        key=alone_key(pod.uid),
        faults=tuple(faults),
    )


def unread(pod: Pod, what: str, why: str) -> Membership:
    """Hold a pod back: what it names may make it one of a gang, and cannot be read."""
    text = f"cannot be read: {why}; the pod waits, as it must not start without the others"
    return replace(alone(pod, [Fault(what, text)]), held_as="PodGroupUnreadable")


def faulty(pod: Pod, faults: Sequence[Fault]) -> Membership:
    """Hold a pod back: it is unclear what it or its owners mean."""
    return replace(alone(pod, faults), held_as="AnnotationInvalid")


def placed(pod: Pod) -> Membership:
    """Return the workload a pod was placed with, as we recorded it."""
    if pod.workload == alone_key(pod.uid):
        return alone(pod)
    return Membership(
        kind="",
        namespace=pod.namespace,
        name=pod.workload,
        key=pod.workload,
        rank=() if pod.rank is None else (pod.rank,),
    )
