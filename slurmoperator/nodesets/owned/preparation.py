"""What has to exist before the workers of a NodeSet: the objects that they need, and the revision that they are made from."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from slurmoperator.nodesets.owned.owned_objects import OwnedObjects
from slurmoperator.nodesets.owned.revisions import NodeSetRevisions
from slurmoperator.nodesets.plan.admission import Admission
from slurmoperator.nodesets.plan.look import Outcome, Refusal
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.kube.client import KubeClient

KeySteps = Callable[[NodeSetObject], int]
"""Returns the version of the daemons' key that new workers get: see `slurmoperator.keys.rings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationResult:
    """The result of a preparation."""

    revision: str
    """The hash of its template."""
    collisions: int
    """How often another template already had the hash."""
    is_stored: bool = True
    """The revision is stored: otherwise no worker is replaced."""
    key_step: int = 0
    """The version of the daemons' key, which is part of the revision."""
    refusal: Refusal | None = None
    """Why it gets no new workers, such as an object of another owner that they would need."""
    outcome: Outcome = field(default_factory=Outcome)
    """What failed."""


class NodeSetPreparation:
    """Prepares NodeSets, during one term of leadership."""

    def __init__(
        self, kube: KubeClient, key_step: KeySteps, monotonic: Callable[[], float]
    ) -> None:
        self._key_step = key_step
        self._objects = OwnedObjects(kube, monotonic)
        self._revisions = NodeSetRevisions(kube, monotonic)

    def forget(self, uid: str) -> None:
        """Drop a NodeSet."""
        self._objects.forget(uid)
        self._revisions.forget(uid)

    async def prepare(self, admission: Admission, in_use: Collection[str]) -> PreparationResult:
        """Apply its objects, before workers are created, as these are protected from birth; and store its revision.

        Args:
            in_use: the hashes of the templates that its pods were made from.

        Raises:
            KubeError: the objects could not be read.
        """
        node_set = admission.node_set
        if node_set.metadata.deletion_timestamp is not None:
            before = node_set.status  # Kubernetes deletes the revisions after the NodeSet
            return PreparationResult(
                revision=before.node_set_hash, collisions=before.collision_count
            )
        objects = await self._objects.keep(node_set)
        key_step = self._key_step(node_set)  # once: a revision and its pods share it
        revision = await self._revisions.keep(node_set, in_use, key_step)
        failed = () if revision.failure is None else (revision.failure,)
        return PreparationResult(
            revision=revision.hash,
            collisions=revision.collisions,
            is_stored=revision.failure is None,
            key_step=key_step,
            refusal=admission.refusal or objects.refusal or admission.conf.refusal,
            outcome=Outcome(failures=(*objects.failures, *failed)),
        )
