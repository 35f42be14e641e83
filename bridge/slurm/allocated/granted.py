"""Work out from a running job's record what its pods may use."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from bridge.domain.model import allocation, grant
from bridge.domain.model.allocation import TaskGrant, TaskShare
from bridge.domain.model.devices import gres
from bridge.domain.model.grant import Grant
from slurmruntime.slurm import wire
from slurmruntime.values import numbers
from slurmruntime.values.ids import SlurmNode

LAST_S: Final = int(datetime.max.replace(tzinfo=UTC).timestamp()) - 1
"""The last Unix time that can be converted."""

_MEMORY: Final = re.compile(r"(?:^|,)mem=([0-9]{1,15})([KMGTP])(?=,|$)")
_IN_MIB: Final = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def shares_of(wired: wire.Job, nodes: tuple[SlurmNode, ...]) -> Iterator[TaskShare]:
    """Yield the number of tasks on each node; skip nodes whose allocation the response lacks.

    Slurm does not report how many tasks it placed on a node. The number is derived from the CPUs,
    memory and GRES allocated there.
    """
    tasks = wired.tasks.positive or 1
    if len(nodes) in (1, tasks):
        for node in nodes:
            yield TaskShare(node=node, tasks=tasks // len(nodes))
        return
    allocations = wired.job_resources.nodes if wired.job_resources else None
    by_node = {a.name: a for a in (allocations.allocation if allocations else None) or ()}
    per_task = _gres(wired.tres_per_task)
    details = dict(zip(nodes, wired.gres_detail, strict=False)) if per_task else {}
    for node in nodes:
        if (allocated := by_node.get(node)) is None:
            continue
        cpus = wired.cpus_per_task.positive or 1
        rooms = [allocated.cpus.count // cpus]
        if per_cpu := wired.memory_per_cpu.positive:
            rooms.append(allocated.memory.allocated // (per_cpu * cpus))
        has = _gres(details.get(node, ""))
        rooms += [has.get(kind, 0) // count for kind, count in per_task.items()]
        yield TaskShare(node=node, tasks=min(rooms))


def task_grant(wired: wire.Job, shares: tuple[TaskShare, ...]) -> TaskGrant:
    """Return what each task has: the smaller of what was allocated and what was requested for a task.

    The job's user may have changed either while it waited. What cannot be read counts as nothing.
    """
    tasks, nodes = wired.tasks.positive or 1, wired.node_count.positive or 1
    cpus = wired.cpus.positive or 0
    per_task = wired.cpus_per_task.positive or 1
    memory_mib = _allocated_mib(wired.tres_alloc_str)
    if memory_mib is None and (per_node_mib := wired.memory_per_node.positive):
        memory_mib = per_node_mib * nodes
    rooms = [] if memory_mib is None else [memory_mib // tasks]
    if per_cpu_mib := wired.memory_per_cpu.positive:
        rooms.append(per_cpu_mib * (per_task if tasks > 1 else max(per_task, cpus)))
    if nodes > 1 and (per_node_mib := wired.memory_per_node.positive):
        slots = Counter(allocation.slots(shares, tasks))
        rooms.append(per_node_mib // max(slots.values(), default=tasks))
    return TaskGrant(
        cpus=cpus if tasks == 1 else min(per_task, cpus // tasks),
        memory_mib=min(rooms, default=None),
        gres=_gres_of_task(wired, tasks=tasks, nodes=nodes),
    )


def _gres_of_task(wired: wire.Job, *, tasks: int, nodes: int) -> dict[str, int]:
    per_task, per_node = _gres(wired.tres_per_task), _gres(wired.tres_per_node)
    has: Counter[str] = Counter()
    for detail in wired.gres_detail:
        has.update(_gres(detail))
    by_kind: dict[str, int] = {}
    for kind in {*per_task, *per_node, *has}:
        rooms = [per_task[kind]] if kind in per_task else []
        if has:
            rooms.append(has.get(kind, 0) // tasks)
        elif kind in per_node:
            rooms.append(per_node[kind] * nodes // tasks)
        by_kind[kind] = min(rooms)
    return by_kind


def _allocated_mib(tres: str) -> int | None:
    match = _MEMORY.search(tres)
    count = numbers.integer(match[1]) if match else None
    return None if match is None or count is None else int(count * _IN_MIB[match[2]])


def _gres(text: str) -> dict[str, int]:
    """Count GRES by kind, ignoring types: `gres/gpu:a100:2,gres/shard:1`, `gpu:a100:2(IDX:0-1)`."""
    counts: Counter[str] = Counter()
    for part in gres.plain(text).split(","):
        name, *rest = part.removeprefix("gres/").split(":")
        if name:
            number = numbers.integer(rest[-1]) if rest else None
            counts[name] += 1 if number is None else number
    return dict(counts)


def grant_of(wired: wire.Job, shares: tuple[TaskShare, ...]) -> Grant | None:
    """Return what Slurm granted.

    None if the job was changed into one we could not submit again, or if its task layout is
    unknown.
    """
    per_node_mib, per_cpu_mib = wired.memory_per_node.positive, wired.memory_per_cpu.positive
    started_s = wired.start_time.positive
    slots = () if per_node_mib else allocation.slots(shares, wired.tasks.positive or 1)
    if (
        not (per_node_mib or (per_cpu_mib and slots))
        or started_s is None
        or started_s > LAST_S
        or not (wired.user_name and wired.group_name)
    ):
        return None
    nodes, tasks = wired.node_count.positive or 1, wired.tasks.positive or 1
    cpus_per_task = wired.cpus_per_task.positive or 1
    return Grant(
        name=wired.name,
        user=wired.user_name,
        group=wired.group_name,
        account=wired.account,
        partition=wired.partition,
        qos=wired.qos,
        reservation=wired.resv_name,
        wckey=wired.wckey,
        licenses=wired.licenses,
        mcs_label=wired.mcs_label,
        nodes=nodes,
        tasks=tasks,
        cpus_per_task=max(
            cpus_per_task, (wired.cpus.positive or 0) // tasks if nodes == 1 and per_node_mib else 0
        ),
        memory_mib_per_node=per_node_mib or 0,
        memory_mib_per_cpu=0 if per_node_mib else per_cpu_mib or 0,
        gres_per_node=wired.tres_per_node,
        gres_per_task=wired.tres_per_task,
        layout=grant.layout(slots),
        started_s=started_s,
        time_limit_min=None if wired.time_limit.infinite else wired.time_limit.positive,
    )
