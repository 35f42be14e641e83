"""Workers' pods in the API server: the fields that are read, and guarded writes."""

from collections.abc import Mapping
from typing import Any, Final

from bridge.kube import writes
from slurmoperator.objects.labels import PROTECTED_LABEL
from slurmoperator.objects.pod_status import PodStatus
from slurmoperator.workers.situation import PodStage, WorkerPod
from slurmruntime.crd.fields import Moment, ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import JSON_PATCH, STRATEGIC_MERGE_PATCH, KubeClient
from slurmruntime.values.ids import PodUid

_OVER: Final = ("Succeeded", "Failed")
_CANNOT_START: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
"""Reasons of a container that waits because it has no image."""
_WAITS_FOR_INIT_CONTAINERS: Final = "PodInitializing"


class _ClaimOfVolume(ObjectStruct, frozen=True):
    claim_name: str = ""


class _Volume(ObjectStruct, frozen=True):
    persistent_volume_claim: _ClaimOfVolume | None = None


class _PodSpec(ObjectStruct, frozen=True):
    hostname: str = ""
    node_name: str = ""
    volumes: tuple[_Volume, ...] | None = None


class WorkerPodObject(ObjectStruct, frozen=True):
    """The fields of a worker's pod that are read."""

    metadata: ObjectMetadata
    spec: _PodSpec = _PodSpec()
    status: PodStatus = PodStatus()

    @property
    def slurm_node(self) -> str:
        """The name under which its slurmd registers, also on the host network."""
        return self.spec.hostname or self.metadata.name

    @property
    def kube_node(self) -> str:
        """The Kubernetes node that it is bound to, or ""."""
        return self.spec.node_name

    @property
    def claims(self) -> tuple[str, ...]:
        """The names of the PVCs that it uses."""
        claims = (volume.persistent_volume_claim for volume in self.spec.volumes or ())
        return tuple(claim.claim_name for claim in claims if claim is not None)

    @property
    def ready_since(self) -> Moment | None:
        """Since when it has been ready; None if it is not ready or the time is unknown."""
        ready = self.status.condition("Ready")
        return ready.last_transition_time if ready and ready.status == "True" else None

    @property
    def facts(self) -> WorkerPod:
        """The facts that decisions depend on."""
        return WorkerPod(
            uid=self.metadata.uid,
            resource_version=self.metadata.resource_version,
            stage=self._stage,
            is_protected=self.metadata.labels.get(PROTECTED_LABEL) == "true",
        )

    @property
    def _stage(self) -> PodStage:
        if self.metadata.deletion_timestamp is not None:
            return PodStage.TERMINATING
        if self.status.phase in _OVER:
            return PodStage.OVER
        ready = self.status.condition("Ready")
        if ready is not None and ready.status == "True":
            return PodStage.READY
        return PodStage.UNSTARTED if self._has_surely_never_started else PodStage.STARTING

    @property
    def _has_surely_never_started(self) -> bool:
        """Whether its kubelet reports that none of its containers has an image to start from.

        Nothing else counts: a kubelet may have started a container and be unable to report it.
        Behind an init container without an image, the others wait for that one.
        """
        if not self.spec.node_name:
            return True
        init_containers = self.status.init_container_statuses or ()
        containers = self.status.containers
        is_held_up = any(container.waiting_reason in _CANNOT_START for container in init_containers)
        return bool(containers) and all(
            container.restart_count == 0
            and (
                container.waiting_reason in _CANNOT_START
                or (is_held_up and container.waiting_reason == _WAITS_FOR_INIT_CONTAINERS)
            )
            for container in containers
        )


_PROTECTED: Final = f"/metadata/labels/{PROTECTED_LABEL.replace('/', '~1')}"


WORKER_PODS: Final = resource.own_kind(
    paths.collection("v1", "pods"), "Pod", WorkerPodObject, called="other_pod", api_kind="Pod"
)


async def create(
    client: KubeClient, namespace: str, body: Mapping[str, Any], *, owner_uid: str
) -> None:
    """Create a pod; succeed if it exists already: then a reply was lost, or our cache is old.

    Raises:
        Rejected: somebody else has a pod of that name.
        KubeError: it was not created, or the outcome is unknown.
    """
    path = paths.of("api", "v1", "namespaces", namespace, "pods")
    try:
        await client.request("POST", path, body=body)
    except errors.Conflict as conflict:
        name = str(body["metadata"]["name"])
        existing = WORKER_PODS.read(await client.request("GET", paths.pod(namespace, name)))
        if existing.metadata.controller_uid == owner_uid:
            return
        raise errors.Rejected(
            "POST",
            path,
            status=conflict.status,
            reason=conflict.reason,
            message=f"pod {namespace}/{name} already exists and does not belong to this NodeSet: "
            "delete it, or rename the NodeSet",
        ) from conflict


async def protect(client: KubeClient, pod: WorkerPodObject) -> WorkerPodObject:
    """Add the label that makes its evictions be refused.

    Raises:
        Conflict: another pod has its name.
        NotFound: it is gone.
    """
    add = {"op": "add", "path": _PROTECTED, "value": "true"}
    return await _patch(client, pod, [_test_uid(pod.metadata.uid), add], JSON_PATCH)


async def release(
    client: KubeClient, pod: WorkerPodObject, *, uid: str, version: str
) -> WorkerPodObject:
    """Remove that label from exactly this pod and version.

    Raises:
        Conflict: it has changed since it was read.
        NotFound: it is gone.
    """
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    operations = [_test_uid(uid), same, {"op": "remove", "path": _PROTECTED}]
    return await _patch(client, pod, operations, JSON_PATCH)


async def patch_status(
    client: KubeClient, pod: WorkerPodObject, patch: Mapping[str, Any]
) -> WorkerPodObject:
    """Patch its status and metadata; conditions are merged by their types.

    Raises:
        Conflict: another pod has its name.
        NotFound: it is gone.
    """
    return await _patch(client, pod, patch, STRATEGIC_MERGE_PATCH, "/status")


def _test_uid(uid: str) -> dict[str, str]:
    return {"op": "test", "path": "/metadata/uid", "value": uid}


async def _patch(
    client: KubeClient, pod: WorkerPodObject, body: Any, content_type: str, below: str = ""
) -> WorkerPodObject:
    path = paths.pod(pod.metadata.namespace, pod.metadata.name) + below
    answer = await client.request("PATCH", path, body=body, content_type=content_type)
    return WORKER_PODS.read(answer)


async def delete(client: KubeClient, pod: WorkerPodObject, *, uid: str, version: str) -> None:
    """Delete exactly this pod and version; succeed if it is gone.

    Raises:
        Conflict: it has changed since it was read.
    """
    await writes.delete_pod(
        client,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=PodUid(uid),
        version=version,
    )
