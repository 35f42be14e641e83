"""Reads the processors of this machine from the kernel: /sys/devices/system."""

import re
from collections.abc import Iterator
from pathlib import Path

from bridge.domain.model.cores import cpu_list, topology
from bridge.domain.model.cores.topology import Processor

_NUMA = re.compile(r"node[0-9]{1,4}")


def order(root: Path) -> tuple[int, ...]:
    """Return the numbers of the online processors, in Slurm's order; may raise OSError."""
    online = read_cpus(root / "cpu" / "online")
    nodes = root / "node"
    numa = [
        read_cpus(path / "cpulist")
        for path in (sorted(nodes.iterdir()) if nodes.is_dir() else ())
        if _NUMA.fullmatch(path.name)
    ]
    return topology.in_order(_processors(root, online), numa)


def _processors(root: Path, online: frozenset[int]) -> Iterator[Processor]:
    for cpu in sorted(online):
        shared = root / "cpu" / f"cpu{cpu}" / "topology"
        yield Processor(
            cpu=cpu,
            core=read_cpus(shared / "thread_siblings_list"),
            socket=read_cpus(shared / "core_siblings_list"),
        )


def read_cpus(file: Path) -> frozenset[int]:
    """Read a list of processors; raise OSError if the file has none."""
    cpus = cpu_list.parse(file.read_text())
    if cpus is None:
        raise OSError(f"{file}: expected a list of processors")
    return cpus
