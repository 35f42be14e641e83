"""What has to exist before the workers of a NodeSet: the objects that they need, and the revision that they are made from."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.plan.look import ConfInForce, Objection, Outcome, PreparationResult
from slurmoperator.nodesets.revisions.storing import NodeSetRevisions
from slurmoperator.objects.labels import MANAGER, TAKE_OVER_ANNOTATION, takes_over
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.recent import RECHECK, RecentResults
from slurmoperator.rendering.body import digest
from slurmoperator.rendering.leftovers import leftovers
from slurmoperator.rendering.node_sets.nodeset import node_set_bodies
from slurmruntime.kube.apply import owned_objects
from slurmruntime.kube.apply.owned_objects import ObjectOwner
from slurmruntime.kube.apply.ownership import Ownership
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PEER_ERRORS

KeySteps = Callable[[NodeSetObject], int]
"""Returns the version of the daemons' key that new workers get: see `slurmoperator.keys.rings`."""
WorkerTemplates = Callable[[NodeSetObject, WorkerKey, int], Mapping[str, Any]]
"""Renders the pod of a worker with a version of the daemons' key, or raises a `faults.Refusal`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSource:
    """What workers are made from."""

    templates: WorkerTemplates
    key_step: KeySteps
    tried: ConfTrials


class NodeSetPreparation:
    """Prepares NodeSets, during one term of leadership."""

    def __init__(
        self, kube: KubeClient, source: WorkerSource, monotonic: Callable[[], float]
    ) -> None:
        self._kube = kube
        self._source = source
        self._applied = RecentResults[str, bool](monotonic)
        """Whether its objects are as they should be, by the NodeSet's uid, for their digest."""
        self._revisions = NodeSetRevisions(kube, monotonic)

    async def prepare(
        self, conf: ConfInForce, refusal: Objection | None, in_use: Collection[str]
    ) -> PreparationResult:
        """Apply its objects, before workers are created, as these are protected from birth; and store its revision.

        Args:
            refusal: why it gets no workers, as far as is known.
            in_use: the hashes of the templates that its pods were made from.

        Raises:
            KubeError: the objects could not be read.
        """
        node_set = conf.node_set
        if node_set.metadata.deletion_timestamp is not None:
            before = node_set.status  # Kubernetes deletes the revisions after the NodeSet
            return PreparationResult(
                revision=before.node_set_hash, collisions=before.collision_count
            )
        objection, outcome = await self.keep_objects(node_set)
        key_step = self._source.key_step(node_set)  # once: a revision and its pods share it
        prepared = await self._revisions.keep(node_set, in_use, key_step)
        return replace(
            prepared,
            refusal=refusal or objection or conf.refusal,
            template_fault=self._template_fault(node_set, in_use, prepared),
            outcome=outcome + prepared.outcome,
        )

    def _template_fault(
        self, node_set: NodeSetObject, in_use: Collection[str], prepared: PreparationResult
    ) -> str:
        """Render a pod, which takes long, only if there is one to replace."""
        if all(revision == prepared.revision for revision in in_use):
            return ""
        try:
            self._source.templates(node_set, 0, prepared.key_step)
        except faults.Refusal as error:
            return error.text
        return ""

    async def keep_objects(self, node_set: NodeSetObject) -> tuple[Objection | None, Outcome]:
        """Apply what it owns, its budget and sshd's configuration; return why no new worker is safe, and what failed.

        Raises:
            KubeError: they could not be read.
        """
        meta, bodies = node_set.metadata, node_set_bodies(node_set)
        owner = ObjectOwner(uid=meta.uid, manager=MANAGER, takes_over=takes_over(meta))
        desired = digest([bodies, owner.takes_over])
        if self._applied.of(meta.uid, desired):
            return None, Outcome()
        verdicts = await owned_objects.judge(self._kube, bodies, owner)
        if foreign := [
            verdict.reason for verdict in verdicts if verdict.ownership is Ownership.NOT_OURS
        ]:
            hint = f"annotate the NodeSet with {TAKE_OVER_ANNOTATION}=true to take over objects without another controller"
            text = faults.shortened("; ".join((*foreign, hint)))
            return Objection(reason="NotOurs", text=text), Outcome()
        try:
            await owned_objects.apply(self._kube, verdicts, owner)
            await owned_objects.withdraw(self._kube, leftovers("NodeSet", meta, bodies), owner)
        except PEER_ERRORS as failure:
            return None, Outcome(failures=(failure,))
        self._applied.put(meta.uid, desired, result=True, lasts=RECHECK)
        return None, Outcome()
