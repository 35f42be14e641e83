"""The state of the pods of a StatefulSet or Deployment, and what they wait for."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from slurmoperator.keys.mounts import MountingSpec
from slurmoperator.nodesets.volumes import deleted_claims
from slurmoperator.objects.pod_status import PodStatus, why_not_ready
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.apply import writes
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import faults

WORKLOADS: Final = frozenset({"StatefulSet", "Deployment"})
_MOST_PODS: Final = 20
_MOST_WAITS: Final = 3
_LONGEST_WAIT: Final = 300


class _Template(ObjectStruct, frozen=True):
    spec: MountingSpec = MountingSpec()


class _Spec(ObjectStruct, frozen=True):
    replicas: int = 1
    template: _Template = _Template()


class _Status(ObjectStruct, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class DaemonWorkload(ObjectStruct, frozen=True):
    """The fields of a StatefulSet or Deployment that are read."""

    metadata: ObjectMetadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_observed(self) -> bool:
        """Whether its status is about its specification."""
        return self.status.observed_generation >= self.metadata.generation

    @property
    def is_rolled(self) -> bool:
        """Whether it has all its pods, and all are of its template."""
        status = self.status
        return self.is_observed and (
            status.replicas == status.updated_replicas == self.spec.replicas
        )


class DaemonPod(ObjectStruct, frozen=True):
    """The fields of a daemon's pod that are read."""

    metadata: ObjectMetadata
    status: PodStatus = PodStatus()


class _Pods(ObjectStruct, frozen=True):
    items: tuple[DaemonPod, ...] = ()


class WorkloadObject(ObjectStruct, frozen=True):
    """A StatefulSet or Deployment of ours: only its owner, and the fact that it has changed, matter."""

    metadata: ObjectMetadata


class WorkloadState(msgspec.Struct, frozen=True):
    """How many of its pods are ready, and what the others wait for."""

    name: str
    desired: int
    ready: int
    pods: int
    """Ready or not."""
    is_updated: bool
    """Whether all pods are of the current template."""
    waits: tuple[str, ...] = ()
    deleted_claims: tuple[str, ...] = ()
    """Messages about its claims that are being deleted: their data goes with the pods."""

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.is_updated and self.ready == self.desired


_workload = msgspec.json.Decoder(DaemonWorkload)
_pods = msgspec.json.Decoder(_Pods)

WATCHED_WORKLOADS: Final = {
    kind: resource.own_kind(
        paths.collection("apps/v1", writes.PLURALS["apps/v1", kind]), kind, WorkloadObject
    )
    for kind in sorted(WORKLOADS)
}
"""How they are watched, by kind; select them by `labels.MADE_BY_US`."""


async def read(kube: KubeClient, body: Mapping[str, Any]) -> WorkloadState:
    """Return the state of the workload that a body describes; one that does not exist has no pods."""
    where = writes.path(body)
    try:
        workload = resource.decoded(_workload, str(body["kind"]), await kube.request("GET", where))
    except errors.NotFound:
        return WorkloadState(
            name=f"{body['kind']} {body['metadata']['name']}",
            desired=body["spec"].get("replicas", 1),
            ready=0,
            pods=0,
            is_updated=False,
            waits=("it does not exist",),
        )
    status = workload.status
    state = WorkloadState(
        name=f"{body['kind']} {workload.metadata.name}",
        desired=workload.spec.replicas,
        ready=status.ready_replicas,
        pods=status.replicas,
        is_updated=workload.is_observed and status.updated_replicas >= workload.spec.replicas,
    )
    deleted = await deleted_claims.find_deleted(kube, workload.metadata.namespace, claims(body))
    state = msgspec.structs.replace(state, deleted_claims=deleted)
    if state.is_ready:
        return state
    labels = body["spec"]["selector"]["matchLabels"]
    waits = await _waits(kube, workload.metadata.namespace, labels)
    return msgspec.structs.replace(state, waits=waits)


async def read_pods(
    kube: KubeClient, namespace: str, labels: Mapping[str, str], *, most: int
) -> tuple[DaemonPod, ...]:
    """Return the pods with these labels, some of them if there are more."""
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    params = {"labelSelector": selector, "limit": str(most)}
    answer = await kube.request("GET", paths.collection("v1", "pods", namespace), params=params)
    return resource.decoded(_pods, "pods", answer).items


async def _waits(kube: KubeClient, namespace: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    pods = await read_pods(kube, namespace, labels, most=_MOST_PODS)
    waits = [f"pod {pod.metadata.name}: {why}" for pod in pods for why in why_not_ready(pod.status)]
    return tuple(faults.shortened(wait, _LONGEST_WAIT) for wait in waits[:_MOST_WAITS])


def claims(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the claims that the pods of a workload use."""
    spec = body["spec"]
    for volume in spec["template"]["spec"].get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield claim
    for volume_claim_template in spec.get("volumeClaimTemplates") or ():
        for number in range(spec.get("replicas", 1)):
            yield f"{volume_claim_template['metadata']['name']}-{body['metadata']['name']}-{number}"
