"""Decides for one workload: a gang and its placeholder, or a single pod as a workload of one.

Three steps, so that all I/O stays with the caller: `members.Claims` selects the placeholders that
concern each pod, `plan` assigns slots and lists whose facts are needed, `decide` returns the
actions. The loop (`bridge.reconcile.loop`) reads in between. Each step visits every member a fixed
number of times.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from bridge.domain.gang import agree, members, numbering, seating
from bridge.domain.gang.members import Claims, Member
from bridge.domain.gang.numbering import Topology
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Submit
from bridge.domain.lifecycle.decision import Deadlines, Decision, Facts, WhenFull
from bridge.domain.lifecycle.rules import answers, crashes, graces
from bridge.domain.model.allocation import Seat
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import NOBODY, Neighbours, Pod
from bridge.domain.observation.view import View
from bridge.domain.workloads import workload
from bridge.domain.workloads.workload import Workload
from slurmruntime.model.objects import KubeObject
from slurmruntime.values.faults import Fault, one_line
from slurmruntime.values.ids import JobId, KubeNode, PodUid, SlurmNode, WorkloadKey

_READ_AGAIN = timedelta(seconds=10)
"""Rights may be granted, and kinds installed, without an event that we see."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of one pod before its workload is examined."""

    view: View
    """Only the placeholders that concern it (`Claims.of`)."""
    since: datetime
    """When it was first seen in its cell of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCase:
    """A pod that the lifecycle decides for; its facts must be gathered first."""

    pod: Pod
    view: View
    since: datetime
    job: SlurmJob | None
    """The placeholder that counts for it; with a seat, its nodes are in the order of its slots."""
    seat: Seat | None = None
    """A gang member's slot in the allocation, while it waits for its node."""
    beside: Neighbours = NOBODY
    """Members before it that get the same node at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One workload, with each member's place in it."""

    key: WorkloadKey
    is_gang: bool
    faults: tuple[Fault, ...]
    """What is wrong with a single pod's claim to a group."""
    waiting: Workload | None
    """A gang's members that wait for Slurm; None if none does."""
    members: tuple[OpenCase | Member, ...]
    """In rank order, without those in `apart`; a `Member` needs no facts."""
    apart: tuple[Pod, ...] = ()
    """The gang will never have a slot for these: each becomes a workload of its own."""
    held_as: str = ""
    """The condition's reason for these faults, if they may be corrected while the pod waits."""
    unread: tuple[tuple[PodUid, JobId], ...] = ()
    """Members placed by a placeholder whose identity, as last read, does not name them: read it
    again."""

    @property
    def open_cases(self) -> tuple[OpenCase, ...]:
        """Those whose facts `decide` needs."""
        return tuple(member for member in self.members if isinstance(member, OpenCase))

    @property
    def forfeits(self) -> tuple[Pod, ...]:
        """Pods with claims that wait and surely have no placeholder: devices of one must go back."""
        return tuple(case.pod for case in self._claiming if _has_surely_none(case.view))

    @property
    def expectant(self) -> tuple[Pod, ...]:
        """Pods with claims that wait, and whose placeholder is there or was just submitted."""
        return tuple(case.pod for case in self._claiming if not _has_surely_none(case.view))

    @property
    def _claiming(self) -> Iterator[OpenCase]:
        return (
            case
            for case in self.open_cases
            if case.pod.resource_claims and seating.is_waiting(case.pod)
        )

    @property
    def nodes(self) -> tuple[SlurmNode, ...]:
        """Slurm nodes whose Kubernetes nodes `decide` needs."""
        jobs = {
            open_case.job.id: open_case.job
            for open_case in self.open_cases
            if open_case.seat and open_case.job
        }
        return tuple(dict.fromkeys(node for job in jobs.values() for node in job.nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The actions for one workload."""

    first: tuple[tuple[Pod, Decision], ...] = ()
    """Decisions about the placeholder: one after the other, and before the rest."""
    rest: tuple[tuple[Pod, Decision], ...] = ()
    """Decisions about single members: all at once; one that fails does not stop the others."""
    apart: tuple[Pod, ...] = ()
    """Pods to turn into workloads of their own (`Plan.apart`)."""
    retry_after: timedelta | None = None
    """When to look again without an event."""


def plan(
    key: WorkloadKey,
    claims: Claims,
    observations: Mapping[PodUid, Observation],
    declared: KubeObject | None,
    policy: Deadlines,
    *,
    now: datetime,
    topology: Topology,
    read_again: Collection[PodUid] = (),
) -> Plan:
    """Assign slots, and list whose facts are needed.

    Args:
        claims: its pods and placeholders.
        observations: what is known of each pod that this program decides about.
        declared: the object that declares the group's size; None if there is none.
        topology: where nodes are in Slurm's topology: neighbouring ranks get nodes of one switch.
        read_again: members for whose sake the placeholder was already read again (`Plan.unread`):
            once is enough.
    """
    waiting = [(member, pod) for member, pod in claims.members if seating.is_waiting(pod)]
    group = (
        workload.evaluate(waiting, declared, policy.caps) if waiting and claims.is_gang else None
    )
    pods = workload.in_order(claims.members)
    unread = tuple(_unread(claims, observations, read_again)) if claims.is_gang else ()
    if unread:  # the reading is about to be replaced: do not act on it
        observations = {
            uid: replace(observation, view=replace(observation.view, fresh=False))
            for uid, observation in observations.items()
        }
    table = _Table(pods, group, policy, now, topology)
    candidates = [
        table.place(pod, observations[pod.uid]) if pod.uid in observations else claims.others(pod)
        for pod in pods
    ]
    return Plan(
        key=key,
        is_gang=claims.is_gang,
        faults=() if claims.is_gang else claims.members[0][0].faults,
        held_as="" if claims.is_gang else claims.members[0][0].held_as,
        waiting=group,
        members=tuple(candidate for candidate in candidates if candidate is not None),
        apart=tuple(
            pod for pod, candidate in zip(pods, candidates, strict=True) if candidate is None
        ),
        unread=unread,
    )


def decide(
    planned: Plan,
    facts: Mapping[PodUid, Facts],
    kube_nodes: Mapping[SlurmNode, KubeNode],
    policy: Deadlines,
    *,
    now: datetime,
) -> Decisions:
    """Return the actions for the workload.

    Args:
        facts: of each of `Plan.open_cases`.
        kube_nodes: the Kubernetes nodes behind `Plan.nodes`, as far as they are known.
    """
    workload_members = tuple(_members(planned, facts, kube_nodes, policy, now))
    if not planned.is_gang:
        return _alone(workload_members[0], planned, policy)
    agreed = agree.agree(
        workload_members,
        planned.waiting,
        policy,
        now=now,
        is_fresh=all(member.is_fresh for member in workload_members),
    )
    jobs = {member.pod.uid: member.job for member in workload_members}
    agreed = tuple(
        (pod, _amended(pod, jobs.get(pod.uid), decision, policy)) for pod, decision in agreed
    )
    retries = (decision.retry_after for _, decision in agreed)
    return Decisions(
        first=tuple(pair for pair in agreed if agree.leads(pair[1])),
        rest=tuple(
            pair for pair in agreed if not agree.leads(pair[1]) and not agree.is_idle(pair[1])
        ),
        apart=planned.apart,
        retry_after=min((retry for retry in retries if retry is not None), default=None),
    )


def _alone(member: Member, planned: Plan, policy: Deadlines) -> Decisions:
    """Return the lifecycle's decision, but never submit for a faulty claim to a group.

    It is unclear what to submit then. What could not be read is read again.
    """
    decision = member.decision
    if decision is None:
        return Decisions()
    if planned.faults and members.has(decision, Submit):
        reason = planned.held_as or "PodGroupInvalid"
        retry = _READ_AGAIN if planned.held_as else None
        decision = answers.tell(member.pod, reason, one_line(planned.faults), retry=retry)
    decision = _amended(member.pod, member.job, decision, policy)
    return Decisions(first=((member.pod, decision),), retry_after=decision.retry_after)


def _amended(pod: Pod, job: SlurmJob | None, decision: Decision, policy: Deadlines) -> Decision:
    return crashes.excuse(pod, graces.limit_grace(pod, job, decision, policy))


def _members(
    planned: Plan,
    facts: Mapping[PodUid, Facts],
    kube_nodes: Mapping[SlurmNode, KubeNode],
    policy: Deadlines,
    now: datetime,
) -> Iterator[Member]:
    """Decide for each member as if it were alone with the placeholder."""
    nodelists: dict[JobId, tuple[KubeNode, ...]] = {}
    for entry in planned.members:
        if isinstance(entry, Member):
            yield entry
            continue
        pod, job = entry.pod, entry.job
        its = facts[pod.uid]
        decision = lifecycle.decide(its, policy)
        if entry.seat is not None and job is not None:
            if job.id not in nodelists:
                nodelists[job.id] = tuple(kube_nodes[n] for n in job.nodes if n in kube_nodes)
            decision = seating.seated(decision, entry.seat, job, planned.key, nodelists[job.id])
        yield Member(
            pod=pod,
            row=lifecycle.row_of(pod, node_is_gone=its.node_is_gone),
            job=job,
            decision=decision,
            dwelt=now - entry.since,
            is_fresh=entry.view.fresh,
        )


def _has_surely_none(view: View) -> bool:
    return view.fresh and view.surely_none


def _unread(
    claims: Claims, observations: Mapping[PodUid, Observation], read_again: Collection[PodUid]
) -> Iterator[tuple[PodUid, JobId]]:
    """List members that were added to their placeholder's identity after it was read."""
    for pod in claims.pods:
        if pod.is_gated or pod.uid not in observations or pod.uid in read_again:
            continue
        job = lifecycle.placeholder(pod, observations[pod.uid].view)
        if job and job.is_named(pod.job_id, pod.sluid) and not claims.names.has(job, pod):
            yield pod.uid, job.id


@dataclass(slots=True)
class _Table:
    """The members of one workload as they get their slots, one after the other in rank order."""

    _pods: Sequence[Pod]
    _group: Workload | None
    _policy: Deadlines
    _now: datetime
    _topology: Topology
    _rooms: dict[JobId, "_Room"] = field(default_factory=dict)
    _beside: dict[SlurmNode, Neighbours] = field(default_factory=dict)

    def place(self, pod: Pod, observation: Observation) -> OpenCase | Member | None:
        """Return one pod's place; None sets it apart."""
        view, since = observation.view, observation.since
        job = lifecycle.placeholder(pod, view)
        if self._group is None or job is None or not seating.needs_seat(pod, job):
            return OpenCase(pod=pod, view=view, since=since, job=job)
        if job.id not in self._rooms:
            self._rooms[job.id] = _Room(job, self._pods, self._group, self._topology)
        room = self._rooms[job.id]
        if (seat := room.seats.get(pod.uid)) is not None:
            beside = self._beside.get(seat.node, NOBODY)
            self._beside[seat.node] = beside.joined_by(pod)
            # As it is numbered: so it is recorded on its members.
            jobs = tuple(room.job if other.id == job.id else other for other in view.jobs)
            view = replace(view, jobs=jobs)
            return OpenCase(pod=pod, view=view, since=since, job=room.job, seat=seat, beside=beside)
        if not room.is_full:
            decision = answers.wait(room.why_unseated, retry=members.SOON)
        elif seating.when_full(pod) is WhenFull.WAIT:
            decision = members.surplus(pod, job, view, self._policy, dwelt=self._now - since)
        else:
            return None
        return Member(
            pod=pod, row=lifecycle.Row.GATED, job=job, decision=decision, is_fresh=view.fresh
        )


class _Room:
    """A running placeholder's slots, computed once for all that wait for one."""

    def __init__(
        self, job: SlurmJob, pods: Sequence[Pod], group: Workload, topology: Topology
    ) -> None:
        placed = [pod for pod in pods if seating.is_of(job, pod)]
        self.job = numbering.numbered(job, placed, topology)
        self._pods = pods
        self._group = group
        self.seats = seating.seats(self.job, pods, group)

    @cached_property
    def is_full(self) -> bool:
        return seating.is_surplus(self.job, self._pods, self._group)

    @cached_property
    def why_unseated(self) -> str:
        return members.why_unseated(self.job)
