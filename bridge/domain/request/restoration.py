"""Build the placeholder that replaces a lost one: pods are alive, but Slurm no longer knows theirs.

The same job is restored, for the time that is left, on the very nodes of its pods. Its priority is
above every other job's, because it has to start before other jobs that wait for these nodes
(`bridge.domain.nodes.hold`). Whether it was lost: `bridge.domain.lifecycle.evidence`.
"""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime

from bridge.domain.lifecycle.evidence import AccountingRecord
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from bridge.domain.model.placeholder import PlaceholderSpec, Terms
from bridge.domain.request import overrides
from slurmruntime.values.ids import PodUid, SlurmNode

TOP_PRIORITY = 4_000_000_000
"""Below NO_VAL (4294967294), above any sum of a site's weights. It has no effect once the job
runs."""


def placeholder(
    identity: Identity,
    grant: Grant,
    *,
    lost: str,
    pods: Sequence[PodUid],
    nodes: Sequence[SlurmNode],
    record: AccountingRecord | None,
    now: datetime,
) -> PlaceholderSpec:
    """Build the placeholder that requests the same again.

    A gang gets as many tasks on each node as it had, including free slots beside its pods. For a
    heterogeneous job, only components that still have a pod are requested again.

    Args:
        identity: the lost placeholder's, as its pods carry it.
        grant: what Slurm had granted it.
        lost: its SLUID or job id (`Pod.placed_by`).
        pods: its pods that are still placed.
        nodes: where these are, each once; what ended pods had is not requested again.
        record: what slurmdbd reports about it: an administrator may have changed its time limit.
        now: the time from which the remaining time counts.
    """
    components = (grant, *grant.also)
    left = [
        component for component in components if component.tasks_on.keys() & set(nodes)
    ] or components
    whose = replace(identity, pods=tuple(pods), restores=lost)
    limit_min = _remaining_min(grant, record, now)
    first, *also = (_component(component, whose, nodes, limit_min) for component in left)
    return replace(first, also=tuple(also))


def _component(
    grant: Grant, whose: Identity, nodes: Sequence[SlurmNode], limit_min: int | None
) -> PlaceholderSpec:
    # Parser v0.0.45 does not report whether a job is exclusive; the request does.
    asked, _ = overrides.read(whose.frozen.asked if whose.frozen else {})
    counts = {node: count for node, count in grant.tasks_on.items() if node in nodes}
    required = tuple(node for node, count in counts.items() for _ in range(count)) or tuple(nodes)
    tasks = len(required) if counts else math.ceil(grant.tasks * len(nodes) / grant.nodes)
    terms = {field.name: getattr(grant, field.name) for field in fields(Terms)}
    return PlaceholderSpec(
        **terms,
        identity=whose,
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
        is_laid_out=bool(counts),
        priority=TOP_PRIORITY,
    )


def _remaining_min(grant: Grant, record: AccountingRecord | None, now: datetime) -> int | None:
    """Return the remaining minutes, at least one; None without a time limit.

    In that one minute, Slurm itself ends a job whose time has run out meanwhile.
    """
    began, limit_min = grant.started_at, grant.time_limit_min
    if record is not None and record.started_at is not None and record.says_time_limit:
        began, limit_min = record.started_at, record.time_limit_min
    if limit_min is None:
        return None
    return max(1, math.ceil(limit_min - (now - began).total_seconds() / 60))
