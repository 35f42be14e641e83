"""The same gang on nodes of one task each, while somebody moves the nodes from switch to switch.

What a member was granted is recorded on it, as at a real pin: by that, whoever leads next goes on.
"""

from collections.abc import Callable
from dataclasses import replace

from typing_extensions import override

from bridge.domain.lifecycle.actions import Action, Assign
from bridge.domain.model import grant
from bridge.domain.model.allocation import TaskShare
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobPhase
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, SlurmNode
from tests.make import members as build
from tests.make.gangs import UID, decided
from tests.properties.gang_world import World
from tests.properties.storm import Choose

NODES = tuple(SlurmNode(f"n{number}") for number in range(4))
SWITCHES = ("", "t:s0", "t:s1")


class SwitchedWorld(World):
    """One gang, Slurm, and its switches."""

    def __init__(self, choose: Choose) -> None:
        super().__init__(choose)
        self.places: dict[SlurmNode, str] = {}
        self.taken: dict[str, SlurmNode] = {}
        """Where each member that was placed is."""
        self.ranks: dict[tuple[JobId, int], SlurmNode] = {}
        """The node that each rank of a placeholder had first."""

    @override
    def steps(self) -> list[Callable[[], None]]:
        return [*super().steps(), self.somebody_moves_nodes, self.somebody_moves_nodes]

    def somebody_moves_nodes(self) -> None:
        self.places = {node: self.choose(SWITCHES) for node in NODES}

    @override
    def slurm_starts_what_waits(self) -> None:
        for job in self.live():
            if job.phase is JobPhase.WAITING:
                nodes = NODES[: job.tasks]
                given = Grant(
                    name="ring",
                    user="alice",
                    group="team",
                    nodes=len(nodes),
                    tasks=job.tasks,
                    memory_mib_per_cpu=64,
                    layout=grant.layout(nodes),
                    started_s=1,
                )
                shares = tuple(TaskShare(node=node, tasks=1) for node in nodes)
                started = replace(job, phase=JobPhase.RUNNING, nodes=nodes, shares=shares)
                self.put(replace(started, grant=given))

    @override
    def decided(self) -> dict[str, tuple[Action, ...]]:
        if not self.pods:
            return {}
        return decided(self.pods, *self.jobs, topology=lambda node: self.places.get(node, ""))

    @override
    def assign(self, name: str, action: Assign) -> None:
        job, place = self.job(action.job_id), action.place
        pod = next(pod for pod in self.pods if pod.name == name)
        there = self.placed_in(job)
        assert place is not None
        assert job.phase is JobPhase.RUNNING
        assert pod.uid in job.identity.pods, "it was placed before the placeholder named it"
        assert place.rank not in {other.rank for other in there}, "a slot was taken"
        assert action.slurm_node in job.nodes
        assert action.slurm_node not in {self.taken[other.name] for other in there}, "a node was"
        had = self.ranks.setdefault((job.id, place.rank), action.slurm_node)
        assert had == action.slurm_node, "a rank moved"
        placed = build.placed(pod, UID, place.rank, job_id=job.id)
        notes = {**placed.annotations, names.GRANT_ANNOTATION: action.grant}
        self.pods[self.pods.index(pod)] = replace(placed, annotations=notes)
        self.taken[name] = action.slurm_node
