"""What sbatch derives from options: counts of tasks and nodes, a node's shape, resources per task.

Sources: `_opt_verify` of sbatch's `opt.c`, `_validate_tres_per_task` and `verify_hint` of Slurm's common code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from slurmjobs.script import options as o
from slurmjobs.script.chosen import ChosenOptions
from slurmjobs.script.values.numbers import NodeShape
from slurmruntime.values import hostlist

ANY_COUNT = 65535
"""`--hint=multithread` sets this many tasks per core (INFINITE16 of slurm.h)."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """How many tasks and nodes a job has."""

    tasks: int
    tasks_are_set: bool
    least_nodes: int
    most_nodes: int
    """0 for no bound."""
    nodes_are_set: bool


@dataclass(frozen=True, slots=True)
class TaskResources:
    """What each task gets."""

    tres: str = ""
    binding: str = ""
    cpus: int | None = None


@dataclass(frozen=True, slots=True)
class SettledOptions:
    """The options with what follows from them."""

    chosen: ChosenOptions
    shape: NodeShape
    tasks_per_core: int | None
    per_task: TaskResources
    counts: TaskCounts


def settle(chosen: ChosenOptions) -> SettledOptions:
    """Derive what sbatch derives; the options do not contradict each other."""
    chosen = _without_idle_hint(chosen)
    per_task = _per_task(chosen)
    shape = _shape(chosen)
    tasks_per_core = chosen.get(o.NTASKS_PER_CORE)
    hint = chosen.get(o.HINT)
    if hint is not None:
        shape = _hinted(hint.words)
        tasks_per_core = ANY_COUNT if "multithread" in hint.words else None
    return SettledOptions(chosen, shape, tasks_per_core, per_task, _counts(chosen, shape))


def tasks_per_node(chosen: ChosenOptions) -> int | None:
    """Return `--ntasks-per-node`, by either of its names."""
    found = chosen.last_of(o.NTASKS_PER_NODE, o.TASKS_PER_NODE)
    return found.value if found else None


def gpu_count(text: str | None) -> int:
    """Return how many GPUs `2`, `a100:2` or `a100:1,v100:1` are."""
    counts = (part.rpartition(":")[2] for part in (text or "").split(",") if part)
    return sum(int(count) if count.isdecimal() and len(count) < _DIGITS else 1 for count in counts)


_DIGITS: Final = 10


def _without_idle_hint(chosen: ChosenOptions) -> ChosenOptions:
    """Drop a hint that sbatch passes over: one beside any option about a node's shape."""
    stronger = (
        o.NTASKS_PER_CORE,
        o.CORES_PER_SOCKET,
        o.SOCKETS_PER_NODE,
        o.THREADS_PER_CORE,
        o.EXTRA_NODE_INFO,
    )
    return chosen.without(o.HINT) if chosen.has(*stronger) else chosen


def _shape(chosen: ChosenOptions) -> NodeShape:
    shape = NodeShape()
    for each in chosen.all:
        if each.option is o.EXTRA_NODE_INFO:
            shape = each.value
        elif each.option is o.SOCKETS_PER_NODE:
            shape = replace(shape, sockets=each.value)
        elif each.option is o.CORES_PER_SOCKET:
            shape = replace(shape, cores=each.value)
        elif each.option is o.THREADS_PER_CORE:
            shape = replace(shape, threads=each.value)
    return shape


def _hinted(words: tuple[str, ...]) -> NodeShape:
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


def _per_task(chosen: ChosenOptions) -> TaskResources:
    tres = chosen.get(o.TRES_PER_TASK) or ""
    tres = re.sub(r"(^|,)(license|gres):", r"\1\2/", tres)
    for item in filter(None, (chosen.get(o.GPUS_PER_TASK) or "").split(",")):
        kind, separator, count = item.rpartition(":") if ":" in item else item.rpartition("=")
        name = f"gres/gpu:{kind}" if separator else "gres/gpu"
        number = re.match(r"[0-9]*", count)
        tres = _before(f"{name}={int(number[0] or 0) if number else 0}", tres)
    cpus = chosen.get(o.CPUS_PER_TASK)
    if "cpu" in tres.lower():
        found = re.search(r"cpu[=:]([0-9]{1,9})", tres, re.IGNORECASE)
        cpus = int(found[1]) if found else 1
    elif cpus is not None:
        tres = _before(f"cpu={cpus}", tres)
    return TaskResources(tres, _binding(chosen, tres), cpus)


def _before(first: str, rest: str) -> str:
    return f"{first},{rest}" if rest else first


def _binding(chosen: ChosenOptions, tres: str) -> str:
    """Return how generic resources are bound; those per task are, unless the user says otherwise."""
    given = chosen.last_of(o.GPU_BIND, o.TRES_BIND)
    binding = ""
    if given:
        binding = f"gres/gpu:{given.value}" if given.option is o.GPU_BIND else given.value
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


def _counts(chosen: ChosenOptions, shape: NodeShape) -> TaskCounts:
    given = chosen.get(o.NODES)
    least, most = (given.least, given.most) if given else (1, 0)
    nodes_are_set = given is not None
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


def _arbitrary(chosen: ChosenOptions, counts: TaskCounts) -> TaskCounts:
    """Count the tasks of an arbitrary distribution: one for each time a node is named."""
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
