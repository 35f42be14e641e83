"""How the pods of a StatefulSet or Deployment stand, and what they wait for, in words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from slurmoperator.nodesets.owned import deleted_claims
from slurmoperator.objects.pod_status import PodStatus, why_not_ready
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.apply import writes
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import ResourceKind
from slurmruntime.values import faults

WORKLOADS: Final = frozenset({"StatefulSet", "Deployment"})
_MOST_PODS: Final = 20
_MOST_SAID: Final = 3
_LONGEST_SAID: Final = 300


class _Spec(ObjectStruct, frozen=True):
    replicas: int = 1


class _Status(ObjectStruct, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class _Workload(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Pod(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: PodStatus = PodStatus()


class _Pods(ObjectStruct, frozen=True):
    items: tuple[_Pod, ...] = ()


class WatchedWorkload(ObjectStruct, frozen=True):
    """A StatefulSet or Deployment of ours; whose it is, and that it has changed."""

    metadata: ObjectMetadata


class WorkloadState(msgspec.Struct, frozen=True):
    """How many of its pods are ready, and what the others wait for."""

    name: str
    wanted: int
    ready: int
    there: int
    """Pods, ready or not."""
    is_updated: bool
    """Whether all are as they are wanted now."""
    waits: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    """Which of its claims are being deleted, in words: their data goes with the pods."""

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.is_updated and self.ready == self.wanted


_watched = msgspec.json.Decoder(WatchedWorkload)
_workload = msgspec.json.Decoder(_Workload)
_pods = msgspec.json.Decoder(_Pods)


def _kind(kind: str) -> ResourceKind[WatchedWorkload]:
    return ResourceKind(
        path=paths.collection("apps/v1", writes.PLURALS["apps/v1", kind]),
        read=lambda body: resource.decoded(_watched, kind, body),
        key=lambda found: found.metadata.uid,
        version=lambda found: found.metadata.resource_version,
        name=lambda found: found.metadata.full_name,
    )


WATCHED_WORKLOADS: Final = {kind: _kind(kind) for kind in sorted(WORKLOADS)}
"""How they are watched, by kind; select them by `labels.MADE_BY_US`."""


async def read(kube: KubeClient, body: Mapping[str, Any]) -> WorkloadState | None:
    """Return how a workload stands now; None if there is none.

    Args:
        kube: the API server.
        body: what we want of it.
    """
    where = writes.path(body)
    try:
        found = resource.decoded(_workload, str(body["kind"]), await kube.request("GET", where))
    except errors.NotFound:
        return None
    status = found.status
    state = WorkloadState(
        name=f"{body['kind']} {found.metadata.name}",
        wanted=found.spec.replicas,
        ready=status.ready_replicas,
        there=status.replicas,
        is_updated=status.observed_generation >= found.metadata.generation
        and status.updated_replicas >= found.spec.replicas,
    )
    leaving = await deleted_claims.deleted(kube, found.metadata.namespace, claims(body))
    state = msgspec.structs.replace(state, leaving=leaving)
    if state.is_ready:
        return state
    labels = body["spec"]["selector"]["matchLabels"]
    waits = await _waits(kube, found.metadata.namespace, labels)
    return msgspec.structs.replace(state, waits=waits)


async def _waits(kube: KubeClient, namespace: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    params = {"labelSelector": selector, "limit": str(_MOST_PODS)}
    answer = await kube.request("GET", paths.collection("v1", "pods", namespace), params=params)
    found = resource.decoded(_pods, "pods", answer).items
    said = [f"pod {pod.metadata.name}: {why}" for pod in found for why in why_not_ready(pod.status)]
    return tuple(faults.shortened(each, _LONGEST_SAID) for each in said[:_MOST_SAID])


def claims(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the claims that the pods of a workload use."""
    spec = body["spec"]
    for volume in spec["template"]["spec"].get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield claim
    for volume_claim_template in spec.get("volumeClaimTemplates") or ():
        for number in range(spec.get("replicas", 1)):
            yield f"{volume_claim_template['metadata']['name']}-{body['metadata']['name']}-{number}"
