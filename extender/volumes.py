"""Reads where a pod's volumes can be used, before each submit of a pod that has claims."""

import structlog

from bridge.domain.model.pods import Pod
from bridge.domain.model.volumes import ClaimFacts, Claims, Reach, StorageClass
from bridge.kube.volumes import Volumes
from slurmruntime.kube import errors

_log = structlog.get_logger(__name__)


class ClaimReader:
    """Reads the claims of a pod, and their volumes or classes; may raise KubeError."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    async def claims(self, pod: Pod) -> Claims:
        """Return the facts of each claim; claims that we may not read are left out."""
        facts: list[ClaimFacts] = []
        for name in pod.claims:
            try:
                facts.append(await self._facts(pod.namespace, name))
            except errors.Forbidden as error:
                _log.warning("volume.unreadable", claim=name, error=str(error))
        return facts

    async def _facts(self, namespace: str, name: str) -> ClaimFacts:
        try:
            claim = await self._volumes.claim(namespace, name)
        except errors.NotFound:
            return ClaimFacts(name=name, claim=None)
        if claim.volume:
            return ClaimFacts(name=name, claim=claim, reach=await self._reach(claim.volume))
        return ClaimFacts(
            name=name, claim=claim, storage_class=await self._class(claim.storage_class)
        )

    async def _reach(self, volume: str) -> Reach:
        try:
            return await self._volumes.reach(volume)
        except errors.NotFound:
            return ()

    async def _class(self, name: str) -> StorageClass | None:
        """Return a claim's class; a claim without a class waits for a manually created volume."""
        if not name:
            return StorageClass()
        try:
            return await self._volumes.storage_class(name)
        except errors.NotFound:
            return None
