"""Put each worker where its Kubernetes node is in Slurm's topology, as an annotation of that node says.

What Slurm refuses, an unknown switch for instance, costs only that worker's place, and is told.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog

from bridge.domain.nodes.spec import topology_parts
from bridge.slurm import nodes
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.workers.situation import PodStage
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import Rejected, SlurmError
from slurmruntime.values import faults, names
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_RETRY_S: Final = 60.0
_SHOWS_S: Final = 10.0
"""How long it may take until a reading of Slurm shows a move."""
_LONGEST: Final = 1024
"""Characters of an annotation."""
_LONGEST_WORDS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMove:
    """A worker that is to be elsewhere in the topology."""

    slurm_node: str
    kube_node: str
    topology: str


def moves(
    pods: Iterable[WorkerPodObject],
    said: Callable[[str], str],
    listed: Callable[[str], SlurmNodeFacts | None],
) -> Iterator[WorkerMove]:
    """Yield who is to be moved; without an annotation, Slurm's own files say where a worker is.

    Args:
        pods: of one NodeSet.
        said: gives a Kubernetes node's annotation; "" if it has none.
        listed: a node by the last reading of Slurm; None if Slurm has no such node.
    """
    for pod in pods:
        wanted = said(pod.kube_node) if pod.facts.stage is PodStage.READY else ""
        node = listed(pod.slurm_node) if wanted else None
        if node is not None and topology_parts(wanted) != topology_parts(node.topology):
            yield WorkerMove(slurm_node=pod.slurm_node, kube_node=pod.kube_node, topology=wanted)


class WorkerTopology:
    """Moves workers, during one term of leadership."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._tried: dict[str, tuple[WorkerMove, float, str]] = {}
        """By Slurm node: the last move, until when it is not tried again, and why Slurm refuses it; "" if it does not."""

    async def move(self, slurm: SlurmClient, wanted: Iterable[WorkerMove]) -> tuple[str, ...]:
        """Move workers, and return what Slurm refuses, in words; anything else that fails is tried again at a later look."""
        refused: list[str] = []
        for each in wanted:
            before, until_s, words = self._tried.get(each.slurm_node, (None, 0.0, ""))
            if before != each or self._monotonic() >= until_s:
                words = await self._move_one(slurm, each)
                until_s = self._monotonic() + (_RETRY_S if words else _SHOWS_S)
                self._tried[each.slurm_node] = (each, until_s, words)
            if words:
                told = faults.shortened(each.topology, _LONGEST_WORDS)
                annotation = f"its annotation {names.TOPOLOGY_ANNOTATION} is {told!r}"
                refused.append(f"node {each.kube_node}: {annotation}, and {words}")
        return tuple(refused)

    async def _move_one(self, slurm: SlurmClient, move: WorkerMove) -> str:
        """Move one worker; return why Slurm refuses that, or ""."""
        if len(move.topology) > _LONGEST:
            return f"at most {_LONGEST} characters are expected"
        try:
            await nodes.set_topology(slurm, SlurmNode(move.slurm_node), move.topology)
        except Rejected as error:
            return f"Slurm refuses that: {faults.shortened(str(error), _LONGEST_WORDS)}"
        except SlurmError as error:
            _log.warning("worker.not_moved", node=move.slurm_node, error=str(error))
            return ""
        _log.info("worker.moved", node=move.slurm_node, topology=move.topology)
        return ""
