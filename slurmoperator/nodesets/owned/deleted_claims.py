"""Which claims are being deleted while pods use them: Kubernetes waits for the end of the pod, and then the data is gone."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from slurmoperator.nodesets import names
from slurmoperator.nodesets.owned import claims
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.labels import MADE_BY_US
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.kube import errors, lists
from slurmruntime.kube.client import KubeClient

_LOOK_AGAIN: Final = timedelta(seconds=30)
_MOST_ASKED: Final = 16
"""Claims that are asked for one by one; those that we have made for workers come in one list."""

_Asked = tuple[frozenset[str], frozenset[str]]


async def deleted(kube: KubeClient, namespace: str, used: Iterable[str]) -> tuple[str, ...]:
    """Return which of some claims are being deleted, in words.

    Raises:
        KubeError: one could not be read.
    """
    found = []
    for name in islice(used, _MOST_ASKED):
        try:
            claim = claims.read(await kube.request("GET", claims.path(namespace, name)))
        except errors.NotFound:
            continue  # its pod waits for it, which is said
        if claim.metadata.deletion_timestamp is not None:
            found.append(name)
    return tuple(map(_said, found))


class DeletedClaims:
    """Looks at those of workers, every half minute while the same pods are there."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._looked: dict[str, tuple[_Asked, datetime, tuple[str, ...]]] = {}
        """By the NodeSet's uid: what was asked for, until when that holds, and what was found."""

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self._looked.pop(uid, None)

    async def of(
        self, node_set: NodeSetObject, pods: Collection[WorkerPodObject], now: datetime
    ) -> tuple[tuple[str, ...], timedelta | None]:
        """Return which claims of a NodeSet's pods are being deleted, in words, and when to look again.

        Raises:
            KubeError: they could not be read.
        """
        uid = node_set.metadata.uid
        used = frozenset(claim for pod in pods for claim in pod.claims)
        if not used:
            self.forget(uid)
            return (), None
        asked = used, frozenset(pod.metadata.uid for pod in pods)
        before = self._looked.get(uid)
        if before is not None and before[0] == asked and now < before[1]:
            return before[2], before[1] - now
        found = await self._look(node_set, used)
        self._looked[uid] = asked, now + _LOOK_AGAIN, found
        return found, _LOOK_AGAIN

    async def _look(self, node_set: NodeSetObject, used: frozenset[str]) -> tuple[str, ...]:
        meta = node_set.metadata
        params = {"labelSelector": f"{names.selector(meta.name)},{MADE_BY_US}"}
        made = await lists.listing(
            self._kube, claims.CLAIMS, namespace=meta.namespace, params=params
        )
        by_name = {each.metadata.name: each.metadata for each in made}
        going = sorted(
            name for name in used & by_name.keys() if by_name[name].deletion_timestamp is not None
        )
        others = await deleted(self._kube, meta.namespace, sorted(used - by_name.keys()))
        return (*map(_said, going), *others)


def _said(name: str) -> str:
    return f"claim {name} is being deleted, and its data goes when the pod that uses it ends: copy what you need before"
