"""Assigns a running placeholder's slots, numbered along its nodes, to members."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bridge.domain.lifecycle import released
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.actions import Assign, Cancel, OwnCause, Place
from bridge.domain.lifecycle.decision import Decision, WhenFull
from bridge.domain.lifecycle.table import Row
from bridge.domain.model import allocation
from bridge.domain.model.allocation import Seat
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import workload
from bridge.domain.workloads.workload import Workload
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid, SlurmNode, WorkloadKey

HOLDING = frozenset({Row.PLACED, Row.BOUND, Row.STOPPING})
"""Members that keep a placeholder from ending."""


def is_waiting(pod: Pod) -> bool:
    """Check whether a pod waits for its node."""
    return pod.is_gated and not pod.is_deleting and not pod.is_terminal


def needs_seat(pod: Pod, job: SlurmJob) -> bool:
    """Check whether the pod waits for its node and its placeholder has some."""
    return is_waiting(pod) and job.phase is JobPhase.RUNNING and not job.identity.cause


def is_of(job: SlurmJob, pod: Pod) -> bool:
    """Check whether a placeholder placed the pod, or stands in for a lost one that did."""
    is_stand_in = bool(job.identity.restores) and job.identity.restores == pod.placed_by
    return not pod.is_gated and (is_stand_in or job.is_named(pod.job_id, pod.sluid))


def place(action: Assign) -> dict[str, int]:
    """Return a member's place among those of its gang on its node, and their number; none without a gang."""
    if action.place is None:
        return {}
    return {"place": action.place.local_rank, "of": action.place.local_size}


def seats(job: SlurmJob, members: Sequence[Pod], gang: Workload) -> Mapping[PodUid, Seat]:
    """Assign slots of a running placeholder to a gang's waiting members.

    Args:
        job: the placeholder, numbered (`numbering`).
        members: all pods of the workload.
        gang: the waiting ones, in rank order.
    """
    nodes = () if _is_cut(job, members) else slots(job)
    taken = {
        member.rank
        for member in members
        if member.rank is not None and is_of(job, member) and lifecycle.row_of(member) in HOLDING
    }
    return allocation.seat(
        [member.uid for member in gang.members],
        nodes,
        taken=taken,
        wanted=gang.wanted,
        within=_of_their_size(job, members, gang),
    )


def slots(job: SlurmJob) -> tuple[SlurmNode, ...]:
    """Return the node of each slot of a running placeholder, component by component; () if not all fit."""
    parts = [allocation.slots(part.shares, part.tasks) for part in job.components]
    return tuple(itertools.chain(*parts)) if all(parts) else ()


def _is_cut(job: SlurmJob, members: Sequence[Pod]) -> bool:
    """Check whether it has lost some of its nodes: slot numbers then differ from ranks.

    A restore leaves out nodes without a living member, and a running job can be made smaller.
    """
    placed = [member for member in members if member.rank is not None and is_of(job, member)]
    if job.identity.restores:
        sizes = {member.annotations.get(names.WORLD_SIZE_ANNOTATION) for member in placed}
        return bool(sizes - {str(job.tasks)})
    return bool(placed) and released.is_smaller(placed[0], job)


def _of_their_size(job: SlurmJob, members: Sequence[Pod], gang: Workload) -> Mapping[PodUid, range]:
    """Return the slots of each waiting member's size: its equals' component, else the next one.

    A member created after the submit gets a slot only if one like it existed then: a larger pod
    would get less than it asks for.
    """
    ends = list(itertools.accumulate(part.tasks for part in job.components))
    ranges = [range(end - part.tasks, end) for part, end in zip(job.components, ends, strict=True)]
    known: dict[workload.Shape, range] = {}
    for member in members:
        if member.rank is not None and is_of(job, member):
            its = next((slots for slots in ranges if member.rank in slots), range(0))
            known.setdefault(workload.shape(member), its)
    at_the_submit = frozenset(job.identity.pods)
    named = [member for member in gang.members if member.uid in at_the_submit]
    unknown = iter([slots for slots in ranges if slots not in known.values()])
    for member in (*named, *gang.members_like_later()):
        if workload.shape(member) not in known:
            known[workload.shape(member)] = next(unknown, range(0))
    return {member.uid: known.get(workload.shape(member), range(0)) for member in gang.members}


def is_surplus(job: SlurmJob, members: Sequence[Pod], gang: Workload) -> bool:
    """Check whether a member without a slot never gets one: members that stay hold every slot.

    While no member is placed, a gang of exact size is not split: its placeholder has the wrong size.
    """
    rows = tuple(lifecycle.row_of(member) for member in members if is_of(job, member))
    may_be_split = bool(rows) or not gang.is_exact
    is_known = bool(slots(job)) or _is_cut(job, members)
    return may_be_split and is_known and Row.STOPPING not in rows


def when_full(pod: Pod) -> WhenFull:
    """Return what happens to a surplus member: what a valid annotation says, else it gets a job of its own."""
    value = pod.annotations.get(names.WHEN_FULL_ANNOTATION)
    return WhenFull(value) if value in set(WhenFull) else WhenFull.OWN_JOB


def seated(
    decision: Decision, seat: Seat, job: SlurmJob, key: WorkloadKey, nodelist: tuple[KubeNode, ...]
) -> Decision:
    """Put a member's slot into its decision."""
    place = Place(
        workload=key,
        rank=seat.slot,
        world_size=job.tasks,
        nodelist=nodelist,
        local_rank=seat.local_rank,
        local_size=seat.local_size,
    )
    actions = [
        replace(action, slurm_node=seat.node, place=place)
        if isinstance(action, Assign)
        else replace(action, misfits=(seat.node,))
        if isinstance(action, Cancel) and action.cause is OwnCause.MISFIT
        else action
        for action in decision.actions
    ]
    return replace(decision, actions=tuple(actions))
