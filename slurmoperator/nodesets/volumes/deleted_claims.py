"""Finds PVCs that are being deleted while pods use them: the data is gone when the pod ends."""

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from itertools import islice
from typing import Final

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan.look import Outcome
from slurmoperator.nodesets.volumes import claims
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.labels import MADE_BY_US
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.recent import RecentResults
from slurmruntime.kube import errors, lists
from slurmruntime.kube.client import KubeClient

_RECHECK: Final = timedelta(seconds=30)
_MOST_ASKED: Final = 16
"""PVCs that are read one by one; those that we created for workers come in one list."""

_Query = tuple[frozenset[str], frozenset[str]]
"""Names of PVCs, and uids of the pods that use them."""


async def find_deleted(kube: KubeClient, namespace: str, used: Iterable[str]) -> tuple[str, ...]:
    """Return texts about the PVCs among these that are being deleted.

    Raises:
        KubeError: one could not be read.
    """
    leaving = []
    for name in islice(used, _MOST_ASKED):
        try:
            claim = claims.CLAIMS.read(await kube.request("GET", claims.path(namespace, name)))
        except errors.NotFound:
            continue  # its pod waits for it, which is reported elsewhere
        if claim.metadata.deletion_timestamp is not None:
            leaving.append(name)
    return tuple(map(_text, leaving))


class ClaimDeletions:
    """Finds deleted PVCs of workers, every half minute while the pods stay the same."""

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._checks = RecentResults[_Query, tuple[str, ...]](monotonic)
        """The texts, by the NodeSet's uid."""

    async def of(self, node_set: NodeSetObject, pods: Collection[WorkerPodObject]) -> Outcome:
        """Return texts about PVCs of pods that are being deleted, and when to call it again.

        Raises:
            KubeError: they could not be read.
        """
        uid = node_set.metadata.uid
        used = frozenset(claim for pod in pods for claim in pod.claims)
        if not used:
            return Outcome()
        query = used, frozenset(pod.metadata.uid for pod in pods)
        if (texts := self._checks.of(uid, query)) is not None:
            return Outcome(deleted_claims=texts, delays=(self._checks.remaining(uid),))
        texts = await self._check(node_set, used)
        self._checks.put(uid, query, texts, lasts=_RECHECK)
        return Outcome(deleted_claims=texts, delays=(_RECHECK,))

    async def _check(self, node_set: NodeSetObject, used: frozenset[str]) -> tuple[str, ...]:
        meta = node_set.metadata
        params = {"labelSelector": f"{names.selector(meta.name)},{MADE_BY_US}"}
        ours = await lists.listing(
            self._kube, claims.CLAIMS, namespace=meta.namespace, params=params
        )
        by_name = {claim.metadata.name: claim.metadata for claim in ours}
        leaving = sorted(
            name for name in used & by_name.keys() if by_name[name].deletion_timestamp is not None
        )
        others = await find_deleted(self._kube, meta.namespace, sorted(used - by_name.keys()))
        return (*map(_text, leaving), *others)


def _text(name: str) -> str:
    return f"PVC {name} is being deleted; its data is lost when the pod that uses it ends: copy what you need first"
