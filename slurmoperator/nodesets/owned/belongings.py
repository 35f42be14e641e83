"""What a NodeSet has besides its workers: the budget that refuses evictions, and sshd's configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from slurmoperator.nodesets.status import Refusal
from slurmoperator.objects.labels import MANAGER, TAKE_OVER_ANNOTATION
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.rendering.body import digest
from slurmoperator.rendering.leftovers import leftovers
from slurmoperator.rendering.node_sets.nodeset import node_set_bodies
from slurmruntime.kube.apply import belongings
from slurmruntime.kube.apply.belongings import Possessor
from slurmruntime.kube.apply.standing import Standing
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError

LOOK_AGAIN_S: Final = 60.0
"""How often they are read while they are as they should be: a NodeSet is looked at whenever one of its pods changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBelongings:
    """What became of them."""

    refusal: Refusal | None = None
    """What somebody else has made, without which no new worker is safe."""
    failures: tuple[PeerError, ...] = ()


class NodeSetBelongings:
    """Keeps what belongs to NodeSets, during one term of leadership."""

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._seen: dict[str, tuple[str, float]] = {}
        """By the NodeSet's uid: what was in force, and until when that is believed."""

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self._seen.pop(uid, None)

    async def keep(self, node_set: NodeSetObject) -> KeptBelongings:
        """Bring them to what is wanted; before its workers are made, which are protected from their birth.

        Raises:
            KubeError: they were not read.
        """
        meta = node_set.metadata
        bodies = [node_set_body.body for node_set_body in node_set_bodies(node_set)]
        possessor = Possessor(
            uid=meta.uid,
            manager=MANAGER,
            takes_over=meta.annotations.get(TAKE_OVER_ANNOTATION) == "true",
        )
        wanted = digest([bodies, possessor.takes_over])
        known, until_s = self._seen.get(meta.uid, ("", 0.0))
        if known == wanted and self._monotonic() < until_s:
            return KeptBelongings()
        self.forget(meta.uid)
        judged = await belongings.judge(self._kube, bodies, possessor)
        if foreign := [each.reason for each in judged if each.standing is Standing.NOT_OURS]:
            hint = f"annotate the NodeSet with {TAKE_OVER_ANNOTATION}=true to take over what nobody else controls"
            text = faults.shortened("; ".join((*foreign, hint)))
            return KeptBelongings(refusal=Refusal(reason="NotOurs", text=text))
        failure = await belongings.apply(self._kube, judged, possessor)
        if failure is None:
            unwanted = leftovers("NodeSet", meta, bodies)
            failure = await belongings.withdraw(self._kube, unwanted, possessor)
        if failure is not None:
            return KeptBelongings(failures=(failure,))
        self._seen[meta.uid] = (wanted, self._monotonic() + LOOK_AGAIN_S)
        return KeptBelongings()
