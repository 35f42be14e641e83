"""How large a measurement is. Pure."""

import math
from dataclasses import dataclass

from sandbox.options import Options

CONF = """
MaxJobCount=250000
MaxArraySize=100001
"""
"""What slurm.conf needs beside the sandbox's own, so that the jobs find room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Amounts of everything."""

    waiting: int = 10_000
    running: int = 5000
    """At least: the nodes are filled."""
    nodes: int = 2000
    strangers: int = 100_000
    seconds: float = 40.0
    """Of each stretch in which nothing happens."""

    @property
    def node_cpus(self) -> int:
        """Return the CPUs of each node, one for each pod that runs there."""
        return math.ceil(self.running / self.nodes)

    @property
    def filling(self) -> int:
        """Return how many pods fill all nodes."""
        return self.nodes * self.node_cpus

    @property
    def deadline_s(self) -> float:
        """Return the deadline for what everything has to reach, on a slow machine."""
        return 120 + 0.5 * (self.waiting + self.filling + self.nodes) + 0.02 * self.strangers

    def options(self, values: tuple[str, ...]) -> Options:
        """Return a sandbox of this size, with production's timings."""
        return Options(
            nodes=self.nodes,
            plain_nodes=0,
            node_cpus=self.node_cpus,
            node_memory_mib=4096 * self.node_cpus,
            node_gpus=0,
            hurried=False,
            values=values,
        )
