"""Read and write Leases, guarded by resourceVersion; the rules are in `slurmruntime.leading.lease`."""

from datetime import datetime

import msgspec

from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.meta import Metadata, Struct, rfc3339
from slurmruntime.model.leases import LeaseRecord


class _Spec(Struct):
    """`coordination/v1 LeaseSpec`."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class _Lease(Struct):
    """`coordination/v1 Lease`."""

    metadata: Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


_lease = msgspec.json.Decoder(_Lease)


class KubeLeases:
    """The leases of one namespace; implements `slurmruntime.leading.lease.LeaseStore`."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._path = paths.collection("coordination.k8s.io/v1", "leases", namespace)

    async def get(self, name: str) -> LeaseRecord | None:
        """Return a lease, or None if it does not exist."""
        try:
            return _record(await self._client.request("GET", self._path + paths.of(name)))
        except errors.NotFound:
            return None

    async def create(self, name: str, record: LeaseRecord) -> None:
        """Create a lease; raise Conflict if it exists already."""
        await self._client.request("POST", self._path, body=self._body(name, record))

    async def replace(self, name: str, record: LeaseRecord) -> LeaseRecord:
        """Replace the lease that was read at `record.resource_version` and return it as written.

        Raises:
            Conflict: it has been written since.
            NotFound: it no longer exists.
        """
        path = self._path + paths.of(name)
        return _record(await self._client.request("PUT", path, body=self._body(name, record)))

    def _body(self, name: str, record: LeaseRecord) -> dict[str, object]:
        metadata = {"name": name, "namespace": self._namespace}
        if record.resource_version:
            metadata["resourceVersion"] = record.resource_version
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": record.holder,
                "acquireTime": rfc3339(record.acquired_at),
                "renewTime": rfc3339(record.renewed_at),
                "leaseDurationSeconds": record.duration_s,
                "leaseTransitions": record.transitions,
            },
        }


def _record(body: bytes) -> LeaseRecord:
    """Decode a lease; for a moment that a hand-made lease omits, use its creation time."""
    lease = resource.decoded(_lease, "Lease", body)
    spec, created_at = lease.spec, lease.metadata.creation_timestamp
    return LeaseRecord(
        holder=spec.holder_identity or "",
        acquired_at=spec.acquire_time or created_at,
        renewed_at=spec.renew_time or created_at,
        duration_s=spec.lease_duration_seconds or 0,
        transitions=spec.lease_transitions or 0,
        resource_version=lease.metadata.resource_version,
    )
