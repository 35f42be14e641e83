"""Compare a task with what nodes have in Slurm.

Slurm takes a job that none of its nodes could ever run, and ends it at its next pass. So the largest
node is checked before one is submitted. What is in use does not matter: a job may wait for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.domain.model.devices import gres
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values import quantities

_WITH_TYPE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What each task of a job takes on its node, in Slurm's units."""

    cpus: int
    memory_mib: int
    gres: str = ""
    """`gres/gpu:a100:2,gres/shard:1`."""
    partitions: tuple[str, ...] = ()
    """The partitions that it may run in; () leaves that to Slurm."""
    milli_per_cpu: int = quantities.MILLI
    """Thousandths of a CPU of Kubernetes that one of Slurm's is."""


class Shape(NamedTuple):
    """What a node has in Slurm; most pools have few shapes."""

    cpus: int
    memory_mib: int
    gres: str
    partitions: tuple[str, ...]


class Lack(NamedTuple):
    """What a node never has enough of."""

    asked: str
    """`has 99 gpu in Slurm`."""
    has: int = 0
    amount: str = ""
    """How much it has, in words; "" if that says nothing."""


@dataclass(frozen=True, slots=True)
class _Devices:
    """The GRES of one kind: how many, and how many of them of which type."""

    count: int = 0
    typed: Mapping[str, int] = field(default_factory=dict)


def shape(node: SlurmNodeFacts) -> Shape:
    """Return a node's shape."""
    return Shape(
        node.offered_cpus or node.cpus,
        node.offered_memory_mib or node.memory_mib,
        node.gres,
        node.partitions,
    )


def too_small(task: Task, shapes: Iterable[Shape]) -> dict[Shape, Lack]:
    """Return the shapes that can never hold the task, and what each lacks."""
    return {node: lack for node in shapes if (lack := next(_lacking(task, node), None))}


def largest(lacks: Iterable[Lack]) -> str:
    """Describe what most of these nodes lack, and how much of it the largest of them has."""
    all_lacks = tuple(lacks)
    asked = Counter(lack.asked for lack in all_lacks).most_common(1)[0][0]
    most = max(lack for lack in all_lacks if lack.asked == asked)
    return f"{asked} (the largest has {most.amount})" if most.amount else asked


def _lacking(task: Task, node: Shape) -> Iterator[Lack]:
    """Yield what the node never has enough of; nothing where that cannot be judged."""
    if task.partitions and node.partitions and not set(task.partitions) & set(node.partitions):
        yield Lack(f"is in partition {' or '.join(task.partitions)}")
    if 0 < node.cpus < task.cpus:
        has, wants = (
            quantities.cpu_quantity(n, task.milli_per_cpu) for n in (node.cpus, task.cpus)
        )
        yield Lack(f"has {wants} CPUs in Slurm", node.cpus, has)
    if 0 < node.memory_mib < task.memory_mib:
        amount = f"{node.memory_mib}Mi"
        yield Lack(f"has {task.memory_mib}Mi of memory in Slurm", node.memory_mib, amount)
    yield from _devices_lacking(task.gres, node.gres)


def _devices_lacking(asked: str, has: str) -> Iterator[Lack]:
    node_gres = _read(has)
    for kind, devices in sorted(_read(asked.replace("gres/", "")).items()):
        offered = node_gres.get(kind, _Devices())
        if devices is None or offered is None:
            continue
        for type_, count in sorted(devices.typed.items()):
            if (typed := offered.typed.get(type_, 0)) < count:
                yield Lack(f"has {count} {kind}:{type_} in Slurm", typed, str(typed))
        typed_count = sum(devices.typed.values())
        # Slurm counts what is asked for by type within what is asked for without.
        count = max(typed_count, devices.count - typed_count)
        if offered.count < count:
            yield Lack(f"has {count} {kind} in Slurm", offered.count, str(offered.count))


def _read(text: str) -> Mapping[str, _Devices | None]:
    """Read GRES by kind; None for a kind that is written in a form not known here.

    `gpu:a100:4(S:0-1),shard:8` has 4 of gpu, all of type a100, and 8 of shard.
    """
    read: dict[str, _Devices | None] = {}
    for entry in filter(None, gres.plain(text).split(",")):
        kind, *rest = entry.split(":")
        before = read.get(kind, _Devices())
        count = gres.number(rest[-1]) if rest else None
        rest = rest if count is None else rest[:-1]
        if before is None or len(rest) >= _WITH_TYPE:
            read[kind] = None
            continue
        more = Counter(before.typed)
        if rest:
            more[rest[0]] += 1 if count is None else count
        read[kind] = _Devices(before.count + (1 if count is None else count), more)
    return read
