"""Derive what sbatch derives from options: counts of tasks and nodes, a node's shape, resources per task.

Sources: `_opt_verify` of sbatch's `opt.c`, `_validate_tres_per_task` and `verify_hint` of Slurm's common code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from slurmjobs.script import options as o
from slurmjobs.script.option_values import OptionValues
from slurmjobs.script.values.numbers import NodeShape
from slurmruntime.values import hostlist

ANY_COUNT = 65535
"""`--hint=multithread` sets this many tasks per core (INFINITE16 of slurm.h)."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The numbers of tasks and nodes of a job."""

    tasks: int
    tasks_are_set: bool
    least_nodes: int
    most_nodes: int
    """0 for no bound."""
    nodes_are_set: bool


@dataclass(frozen=True, slots=True)
class TaskResources:
    """The resources of each task."""

    tres: str = ""
    binding: str = ""
    cpus: int | None = None


@dataclass(frozen=True, slots=True)
class EffectiveOptions:
    """The options and what sbatch derives from them."""

    chosen: OptionValues
    shape: NodeShape
    tasks_per_core: int | None
    per_task: TaskResources
    counts: TaskCounts


def settle(chosen: OptionValues) -> EffectiveOptions:
    """Derive what sbatch derives from options that do not contradict each other."""
    chosen = _without_idle_hint(chosen)
    per_task = _per_task(chosen)
    shape = _shape(chosen)
    tasks_per_core = chosen.get(o.NTASKS_PER_CORE)
    hint = chosen.get(o.HINT)
    if hint is not None:
        shape = _hinted_shape(hint.words)
        tasks_per_core = ANY_COUNT if "multithread" in hint.words else None
    return EffectiveOptions(chosen, shape, tasks_per_core, per_task, _counts(chosen, shape))


def tasks_per_node(chosen: OptionValues) -> int | None:
    """Return `--ntasks-per-node`, given by either of its names."""
    choice = chosen.last_of(o.NTASKS_PER_NODE, o.TASKS_PER_NODE)
    return choice.value if choice else None


def gpu_count(text: str | None) -> int:
    """Count the GPUs in `2`, `a100:2` or `a100:1,v100:1`."""
    counts = (part.rpartition(":")[2] for part in (text or "").split(",") if part)
    return sum(int(count) if count.isdecimal() and len(count) < _DIGITS else 1 for count in counts)


_DIGITS: Final = 10


def _without_idle_hint(chosen: OptionValues) -> OptionValues:
    """Drop a hint that sbatch ignores: one beside any option about a node's shape."""
    stronger = (
        o.NTASKS_PER_CORE,
        o.CORES_PER_SOCKET,
        o.SOCKETS_PER_NODE,
        o.THREADS_PER_CORE,
        o.EXTRA_NODE_INFO,
    )
    return chosen.without(o.HINT) if chosen.has(*stronger) else chosen


def _shape(chosen: OptionValues) -> NodeShape:
    shape = NodeShape()
    for choice in chosen.all:
        if choice.option is o.EXTRA_NODE_INFO:
            shape = choice.value
        elif choice.option is o.SOCKETS_PER_NODE:
            shape = replace(shape, sockets=choice.value)
        elif choice.option is o.CORES_PER_SOCKET:
            shape = replace(shape, cores=choice.value)
        elif choice.option is o.THREADS_PER_CORE:
            shape = replace(shape, threads=choice.value)
    return shape


def _hinted_shape(words: tuple[str, ...]) -> NodeShape:
    shape = NodeShape()
    for word in words:
        match word:
            case "compute_bound":
                shape = NodeShape(threads=1)
            case "memory_bound":
                shape = replace(shape, cores=1, threads=1)
            case "multithread":
                shape = replace(shape, threads=None)
            case "nomultithread":
                shape = replace(shape, threads=1)
            case _:
                pass
    return shape


def _per_task(chosen: OptionValues) -> TaskResources:
    tres = chosen.get(o.TRES_PER_TASK) or ""
    tres = re.sub(r"(^|,)(license|gres):", r"\1\2/", tres)
    for item in filter(None, (chosen.get(o.GPUS_PER_TASK) or "").split(",")):
        kind, separator, count = item.rpartition(":") if ":" in item else item.rpartition("=")
        name = f"gres/gpu:{kind}" if separator else "gres/gpu"
        number = re.match(r"[0-9]*", count)
        tres = _prepend(f"{name}={int(number[0] or 0) if number else 0}", tres)
    cpus = chosen.get(o.CPUS_PER_TASK)
    if "cpu" in tres.lower():
        cpu_match = re.search(r"cpu[=:]([0-9]{1,9})", tres, re.IGNORECASE)
        cpus = int(cpu_match[1]) if cpu_match else 1
    elif cpus is not None:
        tres = _prepend(f"cpu={cpus}", tres)
    return TaskResources(tres, _binding(chosen, tres), cpus)


def _prepend(first: str, rest: str) -> str:
    return f"{first},{rest}" if rest else first


def _binding(chosen: OptionValues, tres: str) -> str:
    """Return the binding of generic resources; those per task are bound unless the user says otherwise."""
    choice = chosen.last_of(o.GPU_BIND, o.TRES_BIND)
    binding = ""
    if choice:
        binding = f"gres/gpu:{choice.value}" if choice.option is o.GPU_BIND else choice.value
    gpus = 0
    for name, count in _gres(tres):
        if name in binding:
            continue
        if name == "gpu":
            gpus += count
        else:
            binding = f"{binding}+gres/{name}:per_task:{count}".removeprefix("+")
    if gpus:
        binding = f"{binding}+gres/gpu:per_task:{gpus}".removeprefix("+")
    return binding


def _gres(tres: str) -> Iterator[tuple[str, int]]:
    for part in tres.split(","):
        if part.startswith("gres/"):
            name, *rest = re.split(r"[:=]", part.removeprefix("gres/"))
            count = int(rest[-1]) if rest and re.fullmatch(r"[0-9]{1,9}", rest[-1]) else 1
            if count:
                yield name, count


def _counts(chosen: OptionValues, shape: NodeShape) -> TaskCounts:
    node_range = chosen.get(o.NODES)
    least, most = (node_range.least, node_range.most) if node_range else (1, 0)
    nodes_are_set = node_range is not None
    names = chosen.get(o.NODELIST)
    if names and not nodes_are_set and "{" not in names:
        least, nodes_are_set = len(set(hostlist.expand(names))), True
    tasks, tasks_are_set = chosen.get(o.NTASKS) or 1, chosen.has(o.NTASKS)
    has_shape = chosen.has(o.EXTRA_NODE_INFO)
    is_fixed = (nodes_are_set or has_shape) and most in {least, 0}
    if is_fixed and tasks_per_node(chosen) is None and not tasks_are_set:
        tasks = max(least, 1)
        for factor in (shape.sockets, shape.cores, shape.threads):
            if factor is not None:
                tasks, tasks_are_set = tasks * factor, True
    elif nodes_are_set and tasks_are_set:
        most = min(most, tasks)
        if tasks < least:
            least = most = tasks
    counts = TaskCounts(tasks, tasks_are_set, least, most, nodes_are_set)
    return _arbitrary(chosen, counts)


def _arbitrary(chosen: OptionValues, counts: TaskCounts) -> TaskCounts:
    """Count the tasks of an arbitrary distribution: one per mention of a node."""
    layout, names = chosen.get(o.DISTRIBUTION), chosen.get(o.NODELIST) or ""
    if layout is None or layout.order != "arbitrary" or "{" in names:
        return counts
    nodes = hostlist.expand(names)
    if not counts.tasks_are_set:
        counts = replace(counts, tasks=len(nodes), tasks_are_set=True)
    if not counts.nodes_are_set:
        unique = len(set(nodes))
        counts = replace(counts, least_nodes=unique, most_nodes=unique, nodes_are_set=True)
    return counts
