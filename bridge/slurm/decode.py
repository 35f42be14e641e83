"""Translate slurmrestd's structs into domain values.

Only this module knows how Slurm represents a job or a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from bridge.domain.model import allocation, grant, identities
from bridge.domain.model.allocation import Component, TaskSize
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.slurm.allocated import devices, granted
from slurmclient.watching.states import component_states
from slurmclient.wire.reading import DecodeResult
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm import wire
from slurmruntime.values import hostlist
from slurmruntime.values.ids import ClusterId, JobId, Sluid, SlurmNode, WorkloadKey

EXTERNAL_JOB: Final = "EXTERNAL_JOB"

_WORST_FIRST: Final = (JobPhase.ENDED, JobPhase.WAITING, JobPhase.PAUSED, JobPhase.RUNNING)

_WHOSE: Final = frozenset({"flags", "admin_comment"})
"""The fields that identify the owner of a job."""

_FOR_THE_GRANT: Final = frozenset(
    {
        "name",
        "user_name",
        "group_name",
        "account",
        "partition",
        "qos",
        "resv_name",
        "wckey",
        "licenses",
        "mcs_label",
        "node_count",
        "cpus",
        "memory_per_node",
        "tres_per_node",
        "tres_alloc_str",
        "state_reason",
        "state_description",
    }
)
"""The fields used only for the grant and for messages; without them a job is still handled."""

_COMPLETED: Final = frozenset({"COMPLETED"})

_ENDS: Final = frozenset(end.value for end in JobEnd)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJob:
    """A job that is not a placeholder, or that cannot be decoded; it must be left alone."""

    id: JobId
    sluid: Sluid | None
    unreadable: str = ""
    """Why a job that has or may have our mark cannot be decoded; "" for other people's jobs."""
    cluster: ClusterId | None = None
    """Cluster of an unreadable job, if that much can be decoded."""
    workload: WorkloadKey | None = None
    """Workload of an unreadable job, if that much can be decoded; nothing may be concluded about
    it.
    """
    array_id: JobId | None = None
    """The array that it is, or is a task of; only known where batch jobs are read, too."""
    odd: str = ""
    """What else could not be decoded, as a message; "" if nothing."""


def job(read: DecodeResult[wire.Job], *also: DecodeResult[wire.Job]) -> SlurmJob | ForeignJob:
    """Reduce a job to what decisions need; tell placeholders (of any cluster) from foreign jobs.

    Args:
        read: the job, or the leader of a heterogeneous job.
        also: the further components of a heterogeneous job, in order.
    """
    leader = _job(read)
    if isinstance(leader, ForeignJob) or not also:
        return leader
    components = [leader]
    for further in also:
        component = _job(further)
        if isinstance(component, ForeignJob):
            why = component.unreadable or f"its component {component.id} has no identity"
            workload = leader.identity.key
            return replace(
                component, id=leader.id, sluid=leader.sluid, unreadable=why, workload=workload
            )
        components.append(component)
    return _merged(components)


def _merged(components: Sequence[SlurmJob]) -> SlurmJob:
    """Merge a heterogeneous job: it runs when all components run, and has ended when any has."""
    leader = components[0]
    phases = [component.phase for component in components]
    phase = next(phase for phase in _WORST_FIRST if phase in phases)
    counts = next(component for component in components if component.phase is phase)
    ends = [component.ends_at for component in components if component.ends_at is not None]
    return replace(
        leader,
        phase=phase,
        states=frozenset[str]().union(
            *(component_states(n, component.states) for n, component in enumerate(components))
        ),
        end=counts.end,
        exit_code=counts.exit_code,
        signal=counts.signal,
        reason=counts.reason,
        reason_text=counts.reason_text,
        nodes=tuple(dict.fromkeys(node for component in components for node in component.nodes)),
        tasks=sum(component.tasks for component in components),
        cpus=sum(component.cpus for component in components),
        shares=(),
        parts=tuple(
            Component(
                tasks=part.tasks, task=part.task, shares=part.shares, task_grant=part.task_grant
            )
            for part in components
        ),
        remains=phase is JobPhase.ENDED and any(other is not phase for other in phases),
        started_at=counts.started_at,
        ends_at=min(ends, default=None),
        expected_start=counts.expected_start,
        grant=_granted_together(components),
    )


def _granted_together(components: Sequence[SlurmJob]) -> Grant | None:
    """Return the grant of all components; None if one has none or its task layout is unknown."""
    granted = [
        replace(
            component.grant,
            layout=grant.layout(allocation.slots(component.shares, component.tasks)),
        )
        for component in components
        if component.grant is not None
    ]
    if len(granted) < len(components) or not all(component.layout for component in granted):
        return None
    return replace(granted[0], also=tuple(granted[1:]))


@lru_cache(maxsize=64)
def _expanded(text: str) -> tuple[SlurmNode, ...]:
    """Expand a hostlist once for all jobs that have it: ten thousand jobs may exclude the same thousands."""
    return tuple(SlurmNode(name) for name in hostlist.expand(text))


def _job(read: DecodeResult[wire.Job]) -> SlurmJob | ForeignJob:
    wired = read.value
    id_ = JobId(wired.job_id)
    sluid = Sluid(wired.step_id.sluid) if wired.step_id.sluid else None
    foreign = ForeignJob(id=id_, sluid=sluid, odd=read.why)
    if read.left_out & _WHOSE:
        return replace(foreign, unreadable=read.why)
    if EXTERNAL_JOB not in wired.flags:
        return foreign
    try:
        identity = identities.decode(wired.admin_comment)
    except identities.UnreadableIdentityError as error:
        return replace(
            foreign, unreadable=str(error), cluster=error.cluster, workload=error.workload
        )
    if identity is None:
        return foreign
    set_aside = replace(foreign, cluster=identity.cluster, workload=identity.key)
    if read.left_out - _FOR_THE_GRANT:
        return replace(set_aside, unreadable=read.why)
    states = frozenset(wired.job_state)
    try:
        phase = phase_of(states)
        nodes, required, excluded = (
            _expanded(text) for text in (wired.nodes, wired.required_nodes, wired.excluded_nodes)
        )
    except ValueError as error:
        return replace(set_aside, unreadable=str(error))
    is_waiting, is_running = phase is JobPhase.WAITING, phase is JobPhase.RUNNING
    shares = () if is_waiting else tuple(granted.shares_of(wired, nodes))
    unlimited = wired.time_limit.infinite
    return SlurmJob(
        id=id_,
        sluid=sluid,
        phase=phase,
        states=states,
        end=end_of(states),
        reason="" if wired.state_reason == "None" else wired.state_reason,
        reason_text=wired.state_description,
        nodes=nodes,
        required_nodes=required,
        excluded_nodes=excluded,
        tasks=wired.tasks.positive or 1,
        task=TaskSize(
            cpus=wired.cpus_per_task.positive or 1,
            memory_mib_per_cpu=wired.memory_per_cpu.positive,
            gres=wired.tres_per_task,
        ),
        shares=shares,
        cpus=(wired.cpus.positive or 0) if is_running else 0,
        task_grant=granted.task_grant(wired, shares) if is_running else None,
        devices=devices.of(wired, nodes) if is_running else None,
        identity=identity,
        held=is_waiting and wired.priority.set and wired.priority.number == 0,
        submitted_at=moment(wired.submit_time),
        started_at=None if is_waiting else moment(wired.start_time),
        ends_at=None if is_waiting or unlimited else moment(wired.end_time),
        expected_start=moment(wired.start_time) if "PENDING" in states else None,
        time_limit_min=None if unlimited else wired.time_limit.positive,
        exit_code=wired.exit_code.return_code.positive or 0,
        signal=wired.exit_code.signal.id.positive or 0,
        grant=granted.grant_of(wired, shares) if is_running and not read.left_out else None,
    )


def phase_of(states: frozenset[str]) -> JobPhase:
    """Return the phase for a base state and its flags (`man squeue`, "JOB STATE CODES").

    Raises ValueError if there is no known base state among them.
    """
    if states & _ENDS:
        return JobPhase.ENDED
    if "SUSPENDED" in states or "STOPPED" in states:
        return JobPhase.PAUSED
    if "RUNNING" in states:
        return JobPhase.WAITING if "CONFIGURING" in states else JobPhase.RUNNING
    if "PENDING" in states:
        return JobPhase.WAITING
    raise ValueError(f"no known base state in {sorted(states)}")


def end_of(states: frozenset[str]) -> JobEnd | None:
    """Return how a job ended; None if it has not."""
    return next((end for end in JobEnd if end.value in states), None)


def has_just_completed(known: SlurmJob, states: frozenset[str]) -> bool:
    """Check whether a job that ran is now COMPLETED and nothing else.

    Then its exit code is 0, and there is no cause of ours, which only a cancel records.
    """
    return known.phase is JobPhase.RUNNING and known.sluid is not None and states == _COMPLETED


def node(wired: wire.Node) -> SlurmNodeFacts:
    """Reduce a node to what decisions need."""
    return SlurmNodeFacts(
        name=SlurmNode(wired.name),
        states=frozenset(wired.state),
        cpus=wired.cpus,
        memory_mib=wired.real_memory,
        features=tuple(wired.features),
        gres=wired.gres,
        address=wired.address,
        alloc_cpus=wired.alloc_cpus,
        alloc_memory_mib=wired.alloc_memory,
        reason=wired.reason,
        reason_by=wired.reason_set_by_user,
        reason_at=moment(wired.reason_changed_at),
        reservation=wired.reservation,
        partitions=tuple(wired.partitions),
        topology=wired.topology,
        weight=wired.weight,
        threads_per_core=wired.threads,
        offered_cpus=wired.effective_cpus or wired.cpus,
        offered_memory_mib=max(0, wired.real_memory - wired.specialized_memory),
    )


def moment(number: wire.Number) -> datetime | None:
    """Convert a Unix time; None for 0, "not set" and times after the year 9999."""
    return unix_moment(number.positive or 0)


def unix_moment(seconds: int) -> datetime | None:
    """Convert a Unix time; None for 0, and for times after the year 9999."""
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds <= granted.LAST_S else None
