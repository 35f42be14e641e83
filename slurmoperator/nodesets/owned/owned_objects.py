"""Objects that a NodeSet owns: the budget that refuses evictions, and sshd's configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from slurmoperator.nodesets.plan.look import Refusal
from slurmoperator.objects.labels import MANAGER, TAKE_OVER_ANNOTATION
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.rendering.body import digest
from slurmoperator.rendering.leftovers import leftovers
from slurmoperator.rendering.node_sets.nodeset import node_set_bodies
from slurmruntime.kube.apply import owned_objects
from slurmruntime.kube.apply.owned_objects import ObjectOwner
from slurmruntime.kube.apply.ownership import Ownership
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError

RECHECK_S: Final = 60.0
"""How often they are read while unchanged: a NodeSet is reconciled whenever one of its pods changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsResult:
    """The outcome of maintaining them."""

    refusal: Refusal | None = None
    """Why no new worker is safe: an object that we need belongs to somebody else."""
    failures: tuple[PeerError, ...] = ()


class OwnedObjects:
    """Maintains the objects that NodeSets own, during one term of leadership."""

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._seen: dict[str, tuple[str, float]] = {}
        """By the NodeSet's uid: the digest of what was applied, and until when that is believed."""

    def forget(self, uid: str) -> None:
        """Drop a NodeSet."""
        self._seen.pop(uid, None)

    async def keep(self, node_set: NodeSetObject) -> ObjectsResult:
        """Apply them. This happens before workers are created, as these are protected from birth.

        Raises:
            KubeError: they could not be read.
        """
        meta = node_set.metadata
        bodies = [node_set_body.body for node_set_body in node_set_bodies(node_set)]
        owner = ObjectOwner(
            uid=meta.uid,
            manager=MANAGER,
            takes_over=meta.annotations.get(TAKE_OVER_ANNOTATION) == "true",
        )
        desired = digest([bodies, owner.takes_over])
        applied, until_s = self._seen.get(meta.uid, ("", 0.0))
        if applied == desired and self._monotonic() < until_s:
            return ObjectsResult()
        self.forget(meta.uid)
        verdicts = await owned_objects.judge(self._kube, bodies, owner)
        if foreign := [
            verdict.reason for verdict in verdicts if verdict.ownership is Ownership.NOT_OURS
        ]:
            hint = f"annotate the NodeSet with {TAKE_OVER_ANNOTATION}=true to take over objects without another controller"
            text = faults.shortened("; ".join((*foreign, hint)))
            return ObjectsResult(refusal=Refusal(reason="NotOurs", text=text))
        failure = await owned_objects.apply(self._kube, verdicts, owner)
        if failure is None:
            unwanted = leftovers("NodeSet", meta, bodies)
            failure = await owned_objects.withdraw(self._kube, unwanted, owner)
        if failure is not None:
            return ObjectsResult(failures=(failure,))
        self._seen[meta.uid] = (desired, self._monotonic() + RECHECK_S)
        return ObjectsResult()
