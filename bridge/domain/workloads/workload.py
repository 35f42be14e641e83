"""A workload: the pods that share one placeholder, how many there must be, and their faults.

A gang is submitted when every member that can exist does. If a controller creates some members only
when others run (LeaderWorkerSet with LeaderReady, exclusive topology), those are the first ones:
the placeholder has room for all, and later members take their slots.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.domain import caps
from bridge.domain.caps import DEFAULT, Caps, Sizes
from bridge.domain.model.demand import Demand
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import kinds
from bridge.domain.workloads.membership import (
    KindWithExclusiveTopology,
    KindWithLaterMembers,
    KindWithSize,
    KindWithSlots,
    Membership,
    Size,
)
from slurmruntime.model.affinity import NodeTerm, Requirement
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import numbers
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import PodUid, WorkloadKey

MAX_SIZE = caps.TABLE["gang_size"].largest
"""More tasks than this are a typing error: their uids alone would take 400 kB in the placeholder's
identity."""

_LARGEST_INDEX = 10**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one placeholder is requested for."""

    key: WorkloadKey
    """`Membership.key`."""
    kind: str
    namespace: str
    name: str
    members: tuple[Pod, ...]
    """Those that are here, in rank order."""
    size: int
    """How many slots the placeholder needs; never less than there are members."""
    declared: int
    """How many members there are at least, as declared."""
    is_exact: bool
    """And no more than that."""
    needed: int
    """How many members must be here before it is submitted."""
    later: Demand | None = None
    """The demand of each later member; None: the same as that of the present ones."""
    shared_label: str = ""
    """A label key: all its nodes must have the same value (exclusive topology)."""
    faults: tuple[Fault, ...] = ()
    wanted: Mapping[PodUid, int] = field(default_factory=dict)
    """Slots that members are entitled to by their index."""

    @property
    def full_name(self) -> str:
        """`kind namespace/name`, for people."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_complete(self) -> bool:
        """True if its members let it be submitted."""
        return not self.faults and len(self.members) >= self.needed

    def kinds(self) -> tuple[tuple[Pod, int], ...]:
        """Return one representative pod and the count for each size, in rank order of the first."""
        stands: dict[Shape, Pod] = {}
        counts: Counter[Shape] = Counter()
        absent = self.size - len(self.members)
        last = self.members[-1]
        later = last if self.later is None else replace(last, demand=self.later)
        for pod, count in (*((member, 1) for member in self.members), (later, absent)):
            if count:
                stands.setdefault(shape(pod), pod)
                counts[shape(pod)] += count
        return tuple((pod, counts[key]) for key, pod in stands.items())

    def members_like_later(self) -> tuple[Pod, ...]:
        """Return the members whose demand is the one foreseen for later members."""
        if self.later is None:
            return ()
        foreseen = self.later
        return tuple(
            pod for pod in self.members if shape(replace(pod, demand=foreseen)) == shape(pod)
        )

    def is_resized(self, tasks: Sequence[int]) -> bool:
        """Check whether a new submit would have other numbers of tasks of each size than these.

        A group with only a minimum admits newcomers while it waits, if all are of one size; a
        member that leaves makes room for others.
        """
        counts = [count for _, count in self.kinds()]
        if self.is_exact:
            return counts != list(tasks)
        of_one_size = len(counts) == len(tasks) == 1
        return (self.size if of_one_size else self.declared) > sum(tasks)


Shape = tuple[object, ...]


def shape(pod: Pod) -> Shape:
    """Return what must be equal for pods to be tasks of one size.

    With exclusive topology the followers are tied to their leader's domain, which contains all
    nodes of the job.
    """
    wanted = pod.demand
    shared = {pod.annotations.get(annotation) for annotation in kinds.EXCLUSIVE_TERMS}
    selector = {key: value for key, value in pod.node_selector.items() if key not in shared}
    return (
        wanted.milli_cpu,
        wanted.memory_bytes,
        tuple(sorted(wanted.extended.items())),
        tuple(sorted(selector.items())),
        _unpinned(pod),
    )


def _unpinned(pod: Pod) -> tuple[NodeTerm, ...]:
    """Return the user's own node terms: the pin narrows each of them, or is the only one."""
    pin = Requirement(key="metadata.name", operator="In", values=(str(pod.assigned_node),))
    terms = (
        replace(
            term,
            match_fields=tuple(
                match_field for match_field in term.match_fields if match_field != pin
            ),
        )
        for term in pod.node_terms
    )
    return tuple(term for term in terms if term != NodeTerm())


def in_order(members: Iterable[tuple[Membership, Pod]]) -> tuple[Pod, ...]:
    """Sort members by rank (none comes last), name (`a-2` before `a-10`), then uid."""
    return tuple(pod for _, pod in sorted(members, key=_order))


def evaluate(
    members: Sequence[tuple[Membership, Pod]],
    declared: KubeObject | None = None,
    most: Caps = DEFAULT,
) -> Workload:
    """Evaluate the members of one workload.

    Args:
        members: at least one; gated, alive, all with the same key.
        declared: what `Membership.declared_by` names, as it is now; None if there is none.
        most: the limits; that on a gang's size applies.
    """
    first = min(members, key=_order)[0]
    declaring = declared
    if first.root is not None and (declared is None or declared.uid != first.root.uid):
        declaring = first.root  # it is gone, or was created again under the same name
    pods = in_order(members)
    size = _size(first, pods, declaring)
    faults = [*size.faults, *(fault for member, _ in members for fault in member.faults)]
    faults += _duplicates(members)
    faults += caps.faults(Sizes(gang_size=size.slots), most)
    by = first.by if isinstance(first.by, KindWithSlots) else None
    slots = {pod.uid: by.slot(member) for member, pod in members} if by else {}
    return Workload(
        key=first.key,
        kind=first.kind,
        namespace=first.namespace,
        name=first.name,
        members=pods,
        size=max(size.slots, len(pods)),
        declared=size.slots,
        is_exact=size.is_exact,
        needed=size.needed,
        wanted={uid: slot for uid, slot in slots.items() if slot is not None},
        later=first.by.later(declaring) if isinstance(first.by, KindWithLaterMembers) else None,
        shared_label=_shared_label(first, pods),
        faults=tuple(dict.fromkeys(faults)),
    )


def _size(member: Membership, pods: Sequence[Pod], declared: KubeObject | None) -> Size:
    if isinstance(member.by, KindWithSize):
        return member.by.size(member, pods, declared)
    return Size(len(pods), len(pods))


def _shared_label(member: Membership, pods: Sequence[Pod]) -> str:
    """Return the label that all nodes share; "" if there is none.

    The others must run where the leader runs: their controller gives them its domain as a node
    selector.
    """
    if not isinstance(member.by, KindWithExclusiveTopology):
        return ""
    key = member.by.exclusive.annotation
    return next((pod.annotations[key] for pod in pods if key in pod.annotations), "")


def _duplicates(members: Sequence[tuple[Membership, Pod]]) -> tuple[Fault, ...]:
    """Report two live pods of one rank: two incarnations, of which the older is about to go."""
    ranks = Counter(member.rank for member, _ in members if member.rank)
    twice = sorted(rank for rank, count in ranks.items() if count > 1)
    if not twice:
        return ()
    listed = ", ".join(".".join(map(str, rank)) for rank in twice[:3])
    return (
        Fault("rank", f"more than one pod has rank {listed}: waiting until the old one is gone"),
    )


def _order(member: tuple[Membership, Pod]) -> tuple[bool, tuple[int, ...], tuple[object, ...], str]:
    rank = member[0].rank
    return not rank, rank, _natural(member[1].name), member[1].uid


def _natural(name: str) -> tuple[object, ...]:
    # Sort `worker-10` after `worker-9`: the parts between dashes count as numbers if they are.
    parts = ((numbers.integer(part, most=_LARGEST_INDEX), part) for part in name.split("-"))
    return tuple((1, 0, part) if number is None else (0, number, "") for number, part in parts)


class Groups:
    """An index of pods by workload, so that one changed pod affects its own workload only."""

    def __init__(self) -> None:
        self._of: dict[PodUid, WorkloadKey] = {}
        self._members: dict[WorkloadKey, dict[PodUid, tuple[Membership, Pod]]] = {}

    def put(self, pod: Pod, member: Membership) -> WorkloadKey | None:
        """Take in a pod as it is now; return the key of the workload it has left, if any."""
        before = self._of.get(pod.uid)
        left = before if before not in (None, member.key) else None
        if left is not None:
            self._drop(left, pod.uid)
        self._of[pod.uid] = member.key
        self._members.setdefault(member.key, {})[pod.uid] = (member, pod)
        return left

    def remove(self, uid: PodUid) -> WorkloadKey | None:
        """Drop a pod that is gone; return the key of its workload."""
        key = self._of.pop(uid, None)
        if key is not None:
            self._drop(key, uid)
        return key

    def key(self, uid: PodUid) -> WorkloadKey | None:
        """Return the workload's key; None for an unknown pod."""
        return self._of.get(uid)

    def namespace(self, key: WorkloadKey) -> str:
        """Return the namespace of a workload's pods; "" for an unknown workload."""
        pods = self._members.get(key, {}).values()
        return next((pod.namespace for _, pod in pods), "")

    def members(self, key: WorkloadKey) -> list[tuple[Membership, Pod]]:
        """Return every pod of a workload, in no particular order."""
        return list(self._members.get(key, {}).values())

    def _drop(self, key: WorkloadKey, uid: PodUid) -> None:
        members = self._members[key]
        del members[uid]
        if not members:
            del self._members[key]
