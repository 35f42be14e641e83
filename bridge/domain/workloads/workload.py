"""A workload: the pods that share one placeholder, how many there have to be, and what is wrong with them.

A gang is submitted when every member that can exist does. Where a controller makes some members only when others run
(LeaderWorkerSet with LeaderReady, exclusive topology), that is the first ones: the placeholder has room for all, and
those that come later take their slots.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.domain import demand, names
from bridge.domain.demand import Demand, Resources
from bridge.domain.faults import Fault
from bridge.domain.ids import PodUid
from bridge.domain.objects import KubeObject
from bridge.domain.pods import NodeTerm, Pod, Requirement
from bridge.domain.workloads import membership
from bridge.domain.workloads.membership import Membership

MAX_SIZE = 10_000
"""More tasks than that are a typing error: their uids alone would be 400 kB in the placeholder's identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one placeholder is asked for."""

    uid: str
    """`Membership.key`."""
    kind: str
    namespace: str
    name: str
    members: tuple[Pod, ...]
    """Those that are here, in rank order."""
    size: int
    """How many slots the placeholder needs; never less than there are members."""
    declared: int
    """How many somebody has said there are, at least."""
    is_exact: bool
    """And no more than that."""
    needed: int
    """How many members have to be here before it is submitted."""
    later: Demand | None = None
    """What each member that comes later asks for; None: what those that are here do."""
    shared_label: str = ""
    """A label key: all of its nodes have to have the same value (exclusive topology)."""
    faults: tuple[Fault, ...] = ()
    wanted: Mapping[PodUid, int] = field(default_factory=dict)
    """Slots that are a member's by its index."""

    @property
    def full_name(self) -> str:
        """`kind namespace/name`, for people."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_complete(self) -> bool:
        """Whether it can be submitted as far as its members go."""
        return not self.faults and len(self.members) >= self.needed

    def kinds(self) -> tuple[tuple[Pod, int], ...]:
        """What is asked for, by size: for each a pod that stands for it, and how many there are; in rank order of the first."""
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

    def made_like_later(self) -> tuple[Pod, ...]:
        """Members that ask for what was foreseen of those that come later."""
        if self.later is None:
            return ()
        foreseen = self.later
        return tuple(
            pod for pod in self.members if shape(replace(pod, demand=foreseen)) == shape(pod)
        )

    def is_resized(self, tasks: Sequence[int]) -> bool:
        """Whether a placeholder with so many tasks of each size is not what would be submitted now.

        A group that only says how many there are at least takes in who comes while it waits, where all are of one size; who
        goes leaves room for others.
        """
        counts = [count for _, count in self.kinds()]
        if self.is_exact:
            return counts != list(tasks)
        of_one_size = len(counts) == len(tasks) == 1
        return (self.size if of_one_size else self.declared) > sum(tasks)


Shape = tuple[object, ...]


def shape(pod: Pod) -> Shape:
    """What has to be alike for pods to be tasks of one size.

    With exclusive topology the followers are tied to the domain of their leader, which all nodes of the job are in.
    """
    wanted = pod.demand
    shared = {pod.annotations.get(annotation) for annotation in membership.EXCLUSIVE_TERMS}
    selector = {key: value for key, value in pod.node_selector.items() if key not in shared}
    return (
        wanted.milli_cpu,
        wanted.memory_bytes,
        tuple(sorted(wanted.extended.items())),
        tuple(sorted(selector.items())),
        _unpinned(pod),
    )


def _unpinned(pod: Pod) -> tuple[NodeTerm, ...]:
    """The user's own node terms: the pin narrows each, or is the only one."""
    pin = Requirement(key="metadata.name", operator="In", values=(str(pod.assigned_node),))
    terms = (
        replace(term, match_fields=tuple(each for each in term.match_fields if each != pin))
        for term in pod.node_terms
    )
    return tuple(term for term in terms if term != NodeTerm())


def in_order(members: Iterable[tuple[Membership, Pod]]) -> tuple[Pod, ...]:
    """Sort members by rank, those without one last; then by name (`a-2` before `a-10`), then by uid."""
    return tuple(pod for _, pod in sorted(members, key=_order))


def evaluate(
    members: Sequence[tuple[Membership, Pod]], declared: KubeObject | None = None
) -> Workload:
    """Say what the members of one workload amount to.

    Args:
        members: at least one; gated, alive, all of one key.
        declared: what `Membership.declared_by` names, as it is now; None if there is none.
    """
    first = min(members, key=_order)[0]
    if declared is not None and first.root is not None and declared.uid == first.root.uid:
        first = replace(first, root=declared)
    pods = in_order(members)
    size, needed, faults = _size(first, pods, declared)
    faults += tuple(fault for member, _ in members for fault in member.faults)
    faults += _duplicates(members)
    if size > MAX_SIZE:
        faults = (*faults, Fault("size", f"expected at most {MAX_SIZE} pods, found {size}"))
    return Workload(
        uid=first.key,
        kind=first.kind,
        namespace=first.namespace,
        name=first.name,
        members=pods,
        size=max(size, len(pods)),
        declared=size,
        is_exact=first.kind != membership.POD_GROUP,
        needed=needed,
        wanted={
            pod.uid: member.rank[0]
            for member, pod in members
            if len(member.rank) == 1
            and member.kind in (membership.JOB, membership.LEADER_WORKER_SET)
        },
        later=_later(first),
        shared_label=_shared_label(first, pods),
        faults=tuple(dict.fromkeys(faults)),
    )


_Size = tuple[int, int, tuple[Fault, ...]]
"""Slots, members needed to begin, faults."""


def _size(member: Membership, pods: Sequence[Pod], declared: KubeObject | None) -> _Size:
    match member.kind:
        case membership.POD:
            return 1, 1, ()
        case membership.POD_GROUP:
            return _of_pod_group(member, declared)
        case membership.LABELLED_GROUP:
            return _annotated(pods, names.POD_GROUP_SIZE_ANNOTATION)
        case membership.KUEUE_GROUP:
            return _annotated(pods, membership.KUEUE_SIZE)
        case membership.LEADER_WORKER_SET:
            return _of_lws(member, pods)
        case _ if member.root is None:
            return len(pods), len(pods), ()
        case _ if names.POD_GROUP_SIZE_ANNOTATION in member.root.annotations:
            return _written(
                [member.root.annotations[names.POD_GROUP_SIZE_ANNOTATION]],
                f"{member.kind} {member.name}: metadata.annotations[{names.POD_GROUP_SIZE_ANNOTATION}]",
            )
        case membership.JOBSET:
            return _of_jobset(member.root, pods)
        case _:
            return _of_job(member.root)


def _of_job(job: KubeObject) -> _Size:
    size, faults = _parallelism(job.spec, f"Job {job.name}: spec")
    done = job.status.get("succeeded") or 0
    completions = job.spec.get("completions")
    if isinstance(completions, int) and isinstance(done, int):
        size = min(size, max(completions - done, 0))
    return size, max(size, 1), faults


def _of_jobset(jobset: KubeObject, pods: Sequence[Pod]) -> _Size:
    """All of the set, or the one replicated Job, or the one Job, that these pods are of."""
    only = pods[0].labels.get(membership.JOBSET_REPLICATED_JOB)
    is_exclusive = membership.is_exclusive(pods[0])
    is_part = is_exclusive or membership.starts_in_turn(jobset)
    total = 0
    faults: list[Fault] = []
    jobs = jobset.spec.get("replicatedJobs")
    for position, each in enumerate(jobs if isinstance(jobs, list) else ()):
        job: Mapping[str, Any] = each if isinstance(each, dict) else {}
        if is_part and job.get("name") != only:
            continue
        path = f"JobSet {jobset.name}: spec.replicatedJobs[{position}]"
        replicas = _count(job.get("replicas", 1), f"{path}.replicas", faults)
        parallelism, wrong = _parallelism(_dig(job, "template", "spec"), f"{path}.template.spec")
        faults += wrong
        total += parallelism if is_exclusive else replicas * parallelism
    if not total and not faults:
        faults.append(Fault(f"JobSet {jobset.name}: spec.replicatedJobs", "no pods follow from it"))
    return total, 1 if is_exclusive else total, tuple(faults)


def _of_lws(member: Membership, pods: Sequence[Pod]) -> _Size:
    """Leaders come first where the workers wait for them; also where we may not read the set, as that cannot lock up."""
    size, needed, faults = _annotated(pods, membership.LWS_SIZE)
    policy = member.root.spec.get("startupPolicy", "LeaderCreated") if member.root else ""
    is_exclusive = any(membership.LWS_EXCLUSIVE in pod.annotations for pod in pods)
    return size, needed if policy == "LeaderCreated" and not is_exclusive else 1, faults


def _of_pod_group(member: Membership, declared: KubeObject | None) -> _Size:
    path = f"PodGroup {member.namespace}/{member.name}"
    if declared is None:
        return 0, 1, (Fault(path, "not found: the gang waits until it is created"),)
    faults: list[Fault] = []
    if (
        gang := _dig(declared.spec, "schedulingPolicy", "gang")
    ) or "minMember" not in declared.spec:
        path = f"{path}: spec.schedulingPolicy.gang.minCount"
        least = _count(gang.get("minCount"), path, faults)
    else:
        least = _count(declared.spec["minMember"], f"{path}: spec.minMember", faults)
    return least, least, tuple(faults)


def _annotated(pods: Sequence[Pod], key: str) -> _Size:
    path = f"metadata.annotations[{key}]"
    missing = [pod.name for pod in pods if key not in pod.annotations]
    size, needed, faults = _written(
        [p.annotations[key] for p in pods if key in p.annotations], path
    )
    if missing:
        told = ", ".join(missing[:3])
        faults = (
            *faults,
            Fault(path, f"missing on {told}: every pod of the group says how many there are"),
        )
    return size, needed, faults


def _written(texts: Sequence[str], path: str) -> _Size:
    sizes = sorted(set(texts))
    if len(sizes) > 1:
        found = " and ".join(sizes)
        return 0, 1, (Fault(path, f"the pods of a group name one size, found {found}"),)
    faults: list[Fault] = []
    text = sizes[0] if sizes else "1"
    size = _count(int(text) if text.isascii() and text.isdecimal() else text, path, faults)
    return size, max(size, 1), tuple(faults)


def _shared_label(member: Membership, pods: Sequence[Pod]) -> str:
    """Where the leader runs, the others have to: their controller gives them its domain as a node selector."""
    keys = {
        membership.LEADER_WORKER_SET: membership.LWS_EXCLUSIVE,
        membership.JOBSET: membership.JOBSET_EXCLUSIVE,
    }
    key = keys.get(member.kind, "")
    return next((pod.annotations[key] for pod in pods if key in pod.annotations), "")


def _duplicates(members: Sequence[tuple[Membership, Pod]]) -> tuple[Fault, ...]:
    """Two live pods of one rank are two incarnations at once: the older one is about to go."""
    ranks = Counter(member.rank for member, _ in members if member.rank)
    twice = sorted(rank for rank, count in ranks.items() if count > 1)
    if not twice:
        return ()
    told = ", ".join(".".join(map(str, rank)) for rank in twice[:3])
    return (Fault("rank", f"more than one pod has rank {told}: waiting until the old one is gone"),)


def _parallelism(spec: Mapping[str, Any], path: str) -> tuple[int, tuple[Fault, ...]]:
    faults: list[Fault] = []
    parallelism = _count(spec.get("parallelism", 1), f"{path}.parallelism", faults)
    if spec.get("completionMode") == "Indexed" and isinstance(spec.get("completions"), int):
        parallelism = min(parallelism, spec["completions"])
    return parallelism, tuple(faults)


def _later(member: Membership) -> Demand | None:
    """What a LeaderWorkerSet's workers ask for; they may be of another kind than the leader."""
    if member.kind != membership.LEADER_WORKER_SET or member.root is None:
        return None
    template = _dig(member.root.spec, "leaderWorkerTemplate", "workerTemplate", "spec")
    try:
        return demand.of(
            [_resources(each) for each in template.get("containers") or ()],
            [_resources(each) for each in template.get("initContainers") or ()],
        )
    except (ValueError, TypeError, AttributeError):
        return None  # its pods could not be made either


def _resources(container: Mapping[str, Any]) -> Resources:
    resources = container.get("resources") or {}
    requests, limits = (
        {name: str(quantity) for name, quantity in (resources.get(part) or {}).items()}
        for part in ("requests", "limits")
    )
    return Resources(requests, limits, container.get("restartPolicy") == "Always")


def _count(value: object, path: str, faults: list[Fault]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    faults.append(Fault(path, f"expected a whole number from 1, found {value!r}"))
    return 0


def _dig(value: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _order(
    member: tuple[Membership, Pod],
) -> tuple[bool, tuple[int, ...], tuple[object, ...], str]:
    rank = member[0].rank
    return not rank, rank, _natural(member[1].name), member[1].uid


def _natural(name: str) -> tuple[object, ...]:
    """`worker-10` comes after `worker-9`: parts between dashes as numbers where they are some."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdecimal() else (1, 0, part)
        for part in name.split("-")
    )


class Groups:
    """Which pods share a workload: an index, so that one changed pod touches its own workload only."""

    def __init__(self) -> None:
        self._of: dict[PodUid, str] = {}
        self._members: dict[str, dict[PodUid, tuple[Membership, Pod]]] = {}

    def put(self, pod: Pod, member: Membership) -> str | None:
        """Take in a pod as it is now; returns the key of the workload that it has left, if it has."""
        before = self._of.get(pod.uid)
        left = before if before not in (None, member.key) else None
        if left is not None:
            self._drop(left, pod.uid)
        self._of[pod.uid] = member.key
        self._members.setdefault(member.key, {})[pod.uid] = (member, pod)
        return left

    def remove(self, uid: PodUid) -> str | None:
        """Forget a pod that is gone; returns the key of its workload."""
        key = self._of.pop(uid, None)
        if key is not None:
            self._drop(key, uid)
        return key

    def key(self, uid: PodUid) -> str | None:
        """The workload's key; None for a pod that is not here."""
        return self._of.get(uid)

    def members(self, key: str) -> list[tuple[Membership, Pod]]:
        """Every pod of a workload, in no particular order."""
        return list(self._members.get(key, {}).values())

    def _drop(self, key: str, uid: PodUid) -> None:
        members = self._members[key]
        del members[uid]
        if not members:
            del self._members[key]
