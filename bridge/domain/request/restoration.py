"""Restore placeholders: pods are alive, but Slurm no longer knows their placeholder.

Was it lost, and how is it restored? *Lost* needs positive evidence, because a job that ended and
was purged is absent in the same way. The evidence, best first: what slurmdbd says about that very
job; that slurmctld is about to assign the job's id, or a lower one, again; that another job has its
id. The same job is restored, for the time that is left, on the very nodes of its pods.

It has to start before other jobs that wait for these nodes. So a node whose pods have no
placeholder is drained and takes no jobs. Once their placeholders wait in Slurm, with a priority
above everybody else's, the drain is lifted.
"""

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bridge.domain.ids import JobId, PodUid, SlurmNode
from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobEnd
from bridge.domain.model.placeholder import Identity, PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Evidence
from bridge.domain.request import overrides

TOP_PRIORITY = 4_000_000_000
"""Below NO_VAL (4294967294), above any sum of a site's weights. It has no effect once the job
runs."""

_WRAPS_NEAR = 0.1
"""Share of the id range near its ends.

Slurm's ids start over after the last one: an id in the last tenth and a next one in the first tenth
may be just that.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountedJob:
    """What slurmdbd reports about one job."""

    states: frozenset[str]
    started_at: datetime | None
    ended_at: datetime | None
    """None as long as slurmdbd has not received an end."""
    ended_by: str = ""
    """Who cancelled it; "" if nobody did."""
    says_time_limit: bool = True
    """False if slurmdbd never received one: the job has its partition's limit."""
    time_limit_min: int | None = None
    """None means unlimited, if `says_time_limit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """How slurmctld numbers jobs."""

    next_id: JobId
    last_id: JobId
    """After this one, ids start over."""


def verdict(record: AccountedJob, *, is_up_to_date: bool) -> Evidence:
    """Decide whether slurmctld lost a job that it does not know, or whether the job had ended.

    While slurmdbd is not up to date, a missing end proves nothing: slurmctld keeps what it could
    not send. Two kinds of end do not count as one. `slurmctld -c` drops its state and records every
    job as cancelled, by nobody. And `sacctmgr show runawayjobs` completes jobs that slurmctld does
    not know, in the second in which they started.
    """
    if record.ended_at is None:
        return Evidence.LOST if is_up_to_date else Evidence.PENDING
    if JobEnd.CANCELLED.value in record.states and record.started_at and not record.ended_by:
        return Evidence.LOST
    if JobEnd.COMPLETED.value in record.states and record.ended_at == record.started_at:
        return Evidence.LOST
    return Evidence.ENDED


def went_backwards(job_id: JobId, numbering: Numbering) -> bool:
    """Check whether Slurm is going to assign an id again that it has assigned before.

    If so, it has forgotten the job.
    """
    near = numbering.last_id * _WRAPS_NEAR
    may_have_wrapped = job_id > numbering.last_id - near and numbering.next_id < near
    return numbering.next_id <= job_id and not may_have_wrapped


def placeholder(
    identity: Identity,
    grant: Grant,
    *,
    lost: str,
    pods: Sequence[PodUid],
    nodes: Sequence[SlurmNode],
    record: AccountedJob | None,
    now: datetime,
) -> PlaceholderSpec:
    """Build the placeholder that requests the same again.

    A gang gets as many tasks on each node as it had, including free slots beside its pods. For a
    heterogeneous job, only components that still have a pod are requested again.

    Args:
        identity: the lost placeholder's, as its pods carry it.
        grant: what Slurm had granted it.
        lost: what named it (`Pod.placed_by`).
        pods: its pods that are still placed.
        nodes: where these are, each once; what ended pods had is not requested again.
        record: what slurmdbd reports about it: an administrator may have changed its time limit.
        now: the time from which the remaining time counts.
    """
    whole = (grant, *grant.also)
    left = [each for each in whole if each.tasks_on.keys() & set(nodes)] or whole
    whose = replace(identity, pods=tuple(pods), restores=lost)
    limit_min = _remaining_min(grant, record, now)
    first, *also = (_component(each, whose, nodes, limit_min) for each in left)
    return replace(first, also=tuple(also))


def _component(
    grant: Grant, whose: Identity, nodes: Sequence[SlurmNode], limit_min: int | None
) -> PlaceholderSpec:
    # Parser v0.0.45 does not report whether a job is exclusive; the request does.
    asked, _ = overrides.read(whose.frozen.asked if whose.frozen else {})
    there = {node: count for node, count in grant.tasks_on.items() if node in nodes}
    required = tuple(node for node, count in there.items() for _ in range(count)) or tuple(nodes)
    tasks = len(required) if there else math.ceil(grant.tasks * len(nodes) / grant.nodes)
    return PlaceholderSpec(
        identity=whose,
        name=grant.name,
        user=grant.user,
        group=grant.group,
        account=grant.account,
        partition=grant.partition,
        qos=grant.qos,
        reservation=grant.reservation,
        wckey=grant.wckey,
        nodes_min=len(set(required)),
        nodes_max=len(set(required)),
        tasks=tasks,
        cpus_per_task=grant.cpus_per_task,
        memory_mib_per_node=grant.memory_mib_per_node or None,
        memory_mib_per_cpu=grant.memory_mib_per_cpu or None,
        gres_per_node=grant.gres_per_node,
        gres_per_task=grant.gres_per_task,
        time_limit_min=limit_min,
        exclusive=bool(asked.exclusive),
        required_nodes=required,
        is_laid_out=bool(there),
        licenses=grant.licenses,
        priority=TOP_PRIORITY,
        mcs_label=grant.mcs_label,
    )


def _remaining_min(grant: Grant, record: AccountedJob | None, now: datetime) -> int | None:
    """Return the remaining minutes, at least one.

    In that minute Slurm itself ends a job whose time has run out meanwhile.
    """
    began, limit_min = grant.started_at, grant.time_limit_min
    if record is not None and record.started_at is not None and record.says_time_limit:
        began, limit_min = record.started_at, record.time_limit_min
    if limit_min is None:
        return None
    return max(1, math.ceil(limit_min - (now - began).total_seconds() / 60))


class Hold(enum.Enum):
    """Whether Slurm holds a node for the pods that run there."""

    HELD = "held"
    """All of them have a running placeholder, or no pods are there."""
    RESTORING = "restoring"
    """Some placeholders are about to start there; none is missing."""
    UNDECIDED = "undecided"
    """Some pods have no placeholder, and people must decide what happens to them."""
    UNSURE = "unsure"
    """Slurm does not report, or not yet: change nothing."""
    MISSING = "missing"
    """Some placeholders have to be submitted again; whatever Slurm starts there first takes
    their room."""


_WORST_FIRST = (Hold.MISSING, Hold.UNSURE, Hold.RESTORING, Hold.UNDECIDED)
"""A pod that waits for people does not keep others from starting again."""


def hold(pods: Iterable[Hold]) -> Hold:
    """Combine the holds of a node's pods into the node's own."""
    found = set(pods)
    return next((worst for worst in _WORST_FIRST if worst in found), Hold.HELD)


def hold_for(
    pod: Pod, cell: tuple[Row, Column], evidence: Evidence, refusal: SubmitRefusal | None
) -> Hold:
    """Return the hold for one pod.

    Args:
        pod: the pod.
        cell: where it is in the lifecycle's table.
        evidence: what became of its placeholder, if that is missing.
        refusal: Slurm's refusal of another placeholder; None if there is none.
    """
    row, column = cell
    if row not in (Row.PLACED, Row.BOUND):
        return Hold.HELD
    match column:
        case Column.NONE:
            return Hold.MISSING if _comes_back(pod, evidence, refusal) else Hold.UNDECIDED
        case Column.UNKNOWN:
            return Hold.UNSURE
        case Column.WAITING:
            return Hold.RESTORING
        case _:
            return Hold.HELD


def _comes_back(pod: Pod, evidence: Evidence, refusal: SubmitRefusal | None) -> bool:
    """Check whether the placeholder is restored without anybody's intervention."""
    if refusal is not None or pod.grant is None:
        return False
    is_told = evidence is Evidence.NONE and pod.when_lost == "restore"
    return is_told or evidence in (Evidence.PENDING, Evidence.LOST)
