"""To which workload a pod belongs, and what a kind of workload has to say about that.

Every kind is a file in `kinds` and implements `Kind`. What not every kind has an opinion on is a protocol of its own with one
member (`Sized`, `Ranked`, `Confirmed` …): a kind that does not implement it gets what suits most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from bridge.domain.faults import Fault
from bridge.domain.ids import WorkloadKey, alone_key
from bridge.domain.model.demand import Demand
from bridge.domain.model.objects import KubeObject, Reference
from bridge.domain.model.pods import Pod

POD = "Pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """To which workload one pod belongs."""

    kind: str
    """As people know it, and as its placeholder's identity has it: Job, PodGroup, MPIJob …"""
    namespace: str
    name: str
    """For people: the Job's, the JobSet's, the group's."""
    key: WorkloadKey
    """The workload's uid, as its placeholder's identity has it. A group without a uid of its own is known by its name:
    its incarnations are told apart by their pods."""
    by: "Kind | None" = field(default=None, repr=False, compare=False)
    """Who claims the pod; None for one that is alone or placed already."""
    rank: tuple[int, ...] = ()
    """Its place among the members; those without one come after the others, in the order of their names."""
    declared_by: Reference | None = None
    """The object that says how large the group is: a PodGroup, or an owner."""
    root: KubeObject | None = None
    """That owner, as it was when the pod was new."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the claim; then the pod is placed with nobody, and not alone either."""

    @property
    def is_gang(self) -> bool:
        """Several pods share one placeholder."""
        return self.kind != POD

    @property
    def index(self) -> int | None:
        """Its rank where that is a single number."""
        return self.rank[0] if len(self.rank) == 1 else None


class Size(NamedTuple):
    """How many members a workload has."""

    slots: int
    """How many there will be, as far as anybody has said."""
    needed: int
    """How many have to be here before it is submitted."""
    faults: tuple[Fault, ...] = ()
    is_exact: bool = True
    """There will be no more than that."""


class KindRow(NamedTuple):
    """A kind's line in docs/workloads.md."""

    kind: str
    default: str
    size: str


class Read(NamedTuple):
    """Kinds of object that have to be read for a kind of workload: `get`, nothing else, as nothing is watched for this."""

    group: str
    resources: tuple[str, ...]


class ExclusiveTopology(NamedTuple):
    """How a controller keeps a group in a topology domain that it shares with nobody."""

    annotation: str
    """Names the label by which nodes are of one domain."""
    labels: frozenset[str]
    """Labels of pods by which the controller keeps a group together and others away."""


class Kind(Protocol):
    """What every kind of workload has to say."""

    @property
    def row(self) -> KindRow:
        """What the documentation says of it."""
        ...

    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Say which workload of this kind a pod belongs to; None if to none.

        Args:
            pod: the pod.
            owners: its controllers as far as they can be read, the nearest first.
        """
        ...


@runtime_checkable
class ReadsObjects(Kind, Protocol):
    """A kind for which objects are read: the chart grants the rights."""

    @property
    def reads(self) -> tuple[Read, ...]:
        """What is read."""
        ...


@runtime_checkable
class Sized(Kind, Protocol):
    """A kind that knows how many members there will be; others are complete with those that are here."""

    def size(self, member: Membership, pods: Sequence[Pod], said: KubeObject | None, /) -> Size:
        """Say how many members there are.

        Args:
            member: the first in rank order.
            pods: all that are here, in rank order; at least one.
            said: the object that declares them, as it is now or was last seen; None if nobody can read it.
        """
        ...


@runtime_checkable
class Confirmed(Kind, Protocol):
    """A kind whose claim holds only if an object that the pod names agrees."""

    def is_gang(self, declared: KubeObject | None, /) -> bool:
        """Whether the object makes its pods a gang; None: there is none of that name (yet), so it is waited for."""
        ...


@runtime_checkable
class Ranked(Kind, Protocol):
    """A kind whose controller numbers its pods; the numbers count also where the pods are grouped by something else."""

    def rank(self, pod: Pod, /) -> tuple[int, ...]:
        """Return the pod's place; () if it bears no such number."""
        ...


@runtime_checkable
class Slotted(Kind, Protocol):
    """A kind whose members each want the slot of their own number."""

    def slot(self, member: Membership, /) -> int | None:
        """Return the slot; None if any will do."""
        ...


@runtime_checkable
class Growing(Kind, Protocol):
    """A kind that makes some members when others run, and they may ask for something else."""

    def later(self, said: KubeObject | None, /) -> Demand | None:
        """Return what each that comes later asks for; None: what those that are here do."""
        ...


@runtime_checkable
class Exclusive(Kind, Protocol):
    """A kind whose controller knows exclusive topology."""

    @property
    def exclusive(self) -> ExclusiveTopology:
        """How it is asked for."""
        ...


def alone(pod: Pod, faults: Sequence[Fault] = ()) -> Membership:
    """Make a workload of a single pod."""
    return Membership(
        kind=POD,
        namespace=pod.namespace,
        name=pod.name,
        key=alone_key(pod.uid),
        faults=tuple(faults),
    )


def placed(pod: Pod) -> Membership:
    """Say which workload a pod was placed with, as we wrote it down."""
    if pod.workload == alone_key(pod.uid):
        return alone(pod)
    return Membership(
        kind="",
        namespace=pod.namespace,
        name=pod.workload,
        key=pod.workload,
        rank=() if pod.rank is None else (pod.rank,),
    )
