"""Build what we write about claims: allocations, and the names of a pod's claims."""

from collections.abc import Mapping
from datetime import datetime

from bridge.domain.model.claims.giving import Gift
from bridge.domain.model.claims.values import DeviceClass
from bridge.domain.model.pods import Pod
from slurmruntime.kube import meta
from slurmruntime.values.ids import KubeNode


def allocation(
    gift: Gift, classes: Mapping[str, DeviceClass], node: KubeNode, at: datetime
) -> dict[str, object]:
    """Build the AllocationResult of a claim, as kube-scheduler does.

    The drivers' parameters are included: those of the classes first, then the claim's own.

    The timestamp is needed: kube-scheduler removes a pod that it could not bind from `reservedFor`, and
    when it adds the pod again, it sets a missing timestamp. As an allocation cannot be changed, the API
    server would refuse that each time, and the pod would never be bound.
    """
    config: list[dict[str, object]] = []
    for request in gift.claim.spec.requests:
        device_class = classes.get(request.device_class)
        config += [
            {"source": "FromClass", "requests": [request.name], **parameters}
            for parameters in (device_class.config if device_class else ())
        ]
    config += [{"source": "FromClaim", **parameters} for parameters in gift.claim.spec.config]
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
