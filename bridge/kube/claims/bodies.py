"""What is written of claims: allocations, the finalizer, and which claims are a pod's."""

from collections.abc import Mapping
from datetime import datetime

from bridge.domain.model.claims.giving import FINALIZER, Gift
from bridge.domain.model.claims.values import DeviceClass, ResourceClaim
from bridge.domain.model.pods import Pod
from slurmruntime.kube import meta
from slurmruntime.values.ids import KubeNode


def allocation(
    gift: Gift, classes: Mapping[str, DeviceClass], node: KubeNode, at: datetime
) -> dict[str, object]:
    """Build the AllocationResult of a claim, as kube-scheduler does.

    The drivers' parameters go along: those of the classes first, then the claim's own.
    The time belongs to it: kube-scheduler takes a pod that it could not bind out of `reservedFor`, and
    when it puts the pod in again, it adds the time where there is none. As an allocation cannot be
    changed, the API server would refuse that each time, and the pod would never be bound.
    """
    config: list[dict[str, object]] = []
    for request in gift.claim.spec.requests:
        found = classes.get(request.device_class)
        config += [
            {"source": "FromClass", "requests": [request.name], **each}
            for each in (found.config if found else ())
        ]
    config += [{"source": "FromClaim", **each} for each in gift.claim.spec.config]
    results = [
        {
            "request": result.request,
            "driver": result.device.driver,
            "pool": result.device.pool,
            "device": result.device.device,
        }
        for result in gift.results
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "devices": {"results": results, **({"config": config} if config else {})},
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "allocationTimestamp": meta.rfc3339(at),
    }


def finalized(found: ResourceClaim) -> list[dict[str, object]]:
    """Build the JSON patch that adds the finalizer."""
    path = "/metadata/finalizers"
    change: dict[str, object] = (
        {"op": "add", "path": f"{path}/-", "value": FINALIZER}
        if found.finalizers
        else {"op": "add", "path": path, "value": [FINALIZER]}
    )
    return [*_unchanged(found), change]


def with_status(found: ResourceClaim, status: object) -> list[dict[str, object]]:
    """Build the JSON patch that replaces the status."""
    return [*_unchanged(found), {"op": "add", "path": "/status", "value": status}]


def named(pod: Pod, names: Mapping[str, str]) -> dict[str, object]:
    """Build the pod, for server-side apply, that names its claims; names: the claim for each entry."""
    statuses = [
        {"name": entry, "resourceClaimName": claim} for entry, claim in sorted(names.items())
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "status": {"resourceClaimStatuses": statuses},
    }


def _unchanged(found: ResourceClaim) -> list[dict[str, object]]:
    """Guard a patch: whoever else wrote to the claim meanwhile, wins."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": found.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": found.resource_version},
    ]
