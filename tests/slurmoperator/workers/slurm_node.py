"""A worker's node as a Slurm in memory has it."""

from dataclasses import dataclass, field

from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode


@dataclass(slots=True)
class Node:
    """A worker's record in Slurm."""

    reason: str = ""
    jobs: set[int] = field(default_factory=set)

    def facts(self, name: str, *, jobs: frozenset[int]) -> SlurmNodeFacts:
        states = {"ALLOCATED" if jobs else "IDLE"} | ({"DRAIN"} if self.reason else set())
        return SlurmNodeFacts(name=SlurmNode(name), states=frozenset(states), reason=self.reason)
