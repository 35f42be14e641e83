"""Moves each worker to its Kubernetes node's place in Slurm's topology, by an annotation.

A place that Slurm refuses, such as an unknown switch, affects only that worker and is reported.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from bridge.slurm import nodes
from slurmclient.errors import Declined, SlurmError
from slurmoperator.nodesets.plan.look import NodeSetFacts
from slurmoperator.recent import RecentResults
from slurmoperator.workers.situation import PodStage
from slurmruntime.model.nodes import topology_parts
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.ids import SlurmNode
from slurmruntime.values.names import TOPOLOGY_ANNOTATION

_log = structlog.get_logger(__name__)

_RETRY: Final = timedelta(seconds=60)
_SHOWS: Final = timedelta(seconds=10)
"""How long it may take until a reading of Slurm shows a move."""
_LONGEST: Final = 1024
_LONGEST_MESSAGE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMove:
    """A worker that should be elsewhere in Slurm's topology."""

    slurm_node: str
    kube_node: str
    topology: str


def moves(facts: NodeSetFacts) -> Iterator[WorkerMove]:
    """Yield the workers to move; without an annotation, Slurm's own files determine the place."""
    for pod in facts.pods:
        kube_node = facts.kube_nodes.get(pod.kube_node)
        topology = kube_node.annotations.get(TOPOLOGY_ANNOTATION, "") if kube_node else ""
        if not topology or pod.worker.stage is not PodStage.READY:
            continue
        node = facts.slurm.listed(pod.slurm_node)
        if node is not None and topology_parts(topology) != topology_parts(node.topology):
            yield WorkerMove(slurm_node=pod.slurm_node, kube_node=pod.kube_node, topology=topology)


class WorkerTopology:
    """Moves workers, during one term of leadership."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._refusals = RecentResults[WorkerMove, str](monotonic)
        """By Slurm node: why Slurm refused a move, or ""; it is not retried meanwhile."""

    async def move(self, slurm: SlurmClient, moves: Iterable[WorkerMove]) -> tuple[str, ...]:
        """Move workers, and return texts about refused moves; other failures are retried later."""
        refused: list[str] = []
        for move in moves:
            refusal = self._refusals.of(move.slurm_node, move)
            if refusal is None:
                refusal = await self._move_one(slurm, move)
                lasts = _RETRY if refusal else _SHOWS
                self._refusals.put(move.slurm_node, move, refusal, lasts=lasts)
            if refusal:
                place = faults.shortened(move.topology, _LONGEST_MESSAGE)
                annotation = f"annotation {TOPOLOGY_ANNOTATION} is {place!r}"
                refused.append(f"node {move.kube_node}: {annotation}: {refusal}")
        return tuple(refused)

    async def _move_one(self, slurm: SlurmClient, move: WorkerMove) -> str:
        """Move one worker; return why Slurm refuses that, or ""."""
        if len(move.topology) > _LONGEST:
            return f"expected at most {_LONGEST} characters"
        try:
            await nodes.set_topology(slurm, SlurmNode(move.slurm_node), move.topology)
        except Declined as error:
            return f"Slurm refuses it: {faults.shortened(str(error), _LONGEST_MESSAGE)}"
        except SlurmError as error:
            _log.warning("worker.not_moved", node=move.slurm_node, error=str(error))
            return ""
        _log.info("worker.moved", node=move.slurm_node, topology=move.topology)
        return ""
