"""The processors of a machine in the order in which an external node's CPUs are numbered in Slurm.

Slurm gives an external node one socket of CPUs 0, 1, 2 …, and with threads per core it hands out so
many neighbours together. So threads of one core are neighbours here, then the cores of a NUMA node,
then those of a socket: neighbouring CPUs of Slurm's are near each other on the machine.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """A processor that the kernel schedules on, and what it shares."""

    cpu: int
    """The kernel's number."""
    core: frozenset[int]
    """The processors of its core, itself included: `thread_siblings_list`."""
    socket: frozenset[int]
    """Those of its socket: `core_siblings_list`."""


def in_order(processors: Iterable[Processor], numa: Collection[frozenset[int]]) -> tuple[int, ...]:
    """Return the kernel's numbers of all processors in Slurm's order.

    Args:
        processors: those that are online.
        numa: the processors of each NUMA node; may be empty.
    """
    lowest = {cpu: min(group) for group in numa for cpu in group}

    def place(processor: Processor) -> tuple[int, int, int, int]:
        socket, core = processor.socket | {processor.cpu}, processor.core | {processor.cpu}
        return min(socket), lowest.get(processor.cpu, 0), min(core), processor.cpu

    return tuple(processor.cpu for processor in sorted(processors, key=place))


def behind(
    slurm_cpus: Collection[int], order: Sequence[int], allowed: Collection[int]
) -> frozenset[int] | None:
    """Return the processors behind Slurm's CPU numbers; None if the machine has too few.

    Args:
        slurm_cpus: as Slurm numbers an external node's CPUs.
        order: the kernel's numbers of all processors (`in_order`).
        allowed: the processors that pods may use at all.
    """
    usable = [cpu for cpu in order if cpu in allowed]
    if not slurm_cpus or max(slurm_cpus) >= len(usable):
        return None
    return frozenset(usable[number] for number in slurm_cpus)


def numbered(
    cores: Mapping[int, Collection[int]], threads: int, *, cores_per_socket: int
) -> frozenset[int]:
    """Return Slurm's CPU numbers of cores, as `scontrol show job -d` has them in CPU_IDs.

    Args:
        cores: the cores of each socket, as Slurm numbers both.
        threads: per core.
    """
    return frozenset(
        (socket * cores_per_socket + core) * threads + thread
        for socket, socket_cores in cores.items()
        for core in socket_cores
        for thread in range(threads)
    )


def portion(cpus: Collection[int], *, place: int = 0, of: int = 1) -> frozenset[int]:
    """Return one pod's part of what its job has on a node; empty if it cannot be divided evenly.

    Args:
        place: the pod's place among its gang's pods on that node, from 0; 0 without a gang.
        of: how many pods of the gang are there; 1 without a gang.
    """
    ordered = sorted(cpus)
    share, rest = divmod(len(ordered), max(of, 1))
    return frozenset() if rest else frozenset(ordered[place * share : (place + 1) * share])
