"""Workers' pods in the API server: what is read of them, and how they are written, each write guarded."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bridge.kube import writes
from slurmoperator.objects.labels import PROTECTED_LABEL
from slurmoperator.objects.pod_status import PodStatus
from slurmoperator.workers.situation import PodStage, WorkerPod
from slurmruntime.crd.fields import Moment, ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths
from slurmruntime.kube.client import JSON_PATCH, STRATEGIC_MERGE_PATCH, KubeClient
from slurmruntime.kube.resource import Json, ResourceKind, malformed
from slurmruntime.values.ids import PodUid

_OVER: Final = ("Succeeded", "Failed")
_CANNOT_START: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
"""Why a container waits that has no image to start from."""
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
    """What is read of a worker's pod."""

    metadata: ObjectMetadata
    spec: _PodSpec = _PodSpec()
    status: PodStatus = PodStatus()

    @property
    def slurm_node(self) -> str:
        """The name by which its slurmd registers, also with the network of its machine."""
        return self.spec.hostname or self.metadata.name

    @property
    def kube_node(self) -> str:
        """The Kubernetes node that it is bound to, or ""."""
        return self.spec.node_name

    @property
    def claims(self) -> tuple[str, ...]:
        """The names of the claims that it uses."""
        found = (volume.persistent_volume_claim for volume in self.spec.volumes or ())
        return tuple(each.claim_name for each in found if each is not None)

    @property
    def ready_since(self) -> Moment | None:
        """Since when it is ready; None if it is not, or if nobody says since when."""
        ready = self.status.condition("Ready")
        return ready.last_transition_time if ready and ready.status == "True" else None

    @property
    def facts(self) -> WorkerPod:
        """What decisions depend on."""
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
        """Check whether its kubelet says that none of its containers has an image to start from.

        It may have started it and not be able to say so: nothing else counts. Behind an init
        container without an image, the others wait for that.
        """
        if not self.spec.node_name:
            return True
        first = self.status.init_container_statuses or ()
        found = self.status.containers
        is_held_up = any(each.waits_for in _CANNOT_START for each in first)
        return bool(found) and all(
            each.restart_count == 0
            and (
                each.waits_for in _CANNOT_START
                or (is_held_up and each.waits_for == _WAITS_FOR_INIT_CONTAINERS)
            )
            for each in found
        )


_decoder = msgspec.json.Decoder(WorkerPodObject)
_PROTECTED: Final = f"/metadata/labels/{PROTECTED_LABEL.replace('/', '~1')}"


def read(body: Json) -> WorkerPodObject:
    """Decode a worker's pod.

    Raises:
        Malformed: it is none.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise malformed("Pod", error) from error


WORKER_PODS: Final = ResourceKind(
    path="/api/v1/pods",
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
    called="other_pod",
    api_kind="Pod",
    name=lambda found: found.metadata.full_name,
)
"""Workers' pods, by uid."""


async def create(
    client: KubeClient, namespace: str, body: Mapping[str, Any], *, owner_uid: str
) -> None:
    """Create a pod; succeed if it is there already: then a reply was lost, or our view is old.

    Raises:
        Rejected: somebody else has a pod of that name.
        KubeError: it was not created, or nobody knows.
    """
    path = paths.of("api", "v1", "namespaces", namespace, "pods")
    try:
        await client.request("POST", path, body=body)
    except errors.Conflict as conflict:
        name = str(body["metadata"]["name"])
        found = read(await client.request("GET", paths.pod(namespace, name)))
        if found.metadata.controller_uid == owner_uid:
            return
        raise errors.Rejected(
            "POST",
            path,
            status=conflict.status,
            reason=conflict.reason,
            message=f"pod {namespace}/{name} is there and not of this NodeSet: delete it, or "
            "give the NodeSet another name",
        ) from conflict


async def protect(client: KubeClient, pod: WorkerPodObject) -> WorkerPodObject:
    """Put the label on it by which evictions are refused.

    Raises:
        Conflict: another pod has its name.
        NotFound: it is gone.
    """
    add: dict[str, object] = {"op": "add", "path": _PROTECTED, "value": "true"}
    return await _patch(client, pod, [_this(pod.metadata.uid), add])


async def release(
    client: KubeClient, pod: WorkerPodObject, *, uid: str, version: str
) -> WorkerPodObject:
    """Take that label off this very pod, in this very version.

    Raises:
        Conflict: it has changed since.
        NotFound: it is gone.
    """
    same: dict[str, object] = {
        "op": "test",
        "path": "/metadata/resourceVersion",
        "value": version,
    }
    return await _patch(client, pod, [_this(uid), same, {"op": "remove", "path": _PROTECTED}])


async def tell(
    client: KubeClient, pod: WorkerPodObject, patch: Mapping[str, Any]
) -> WorkerPodObject:
    """Patch its status; conditions are told apart by their types.

    Raises:
        Conflict: another pod has its name.
        NotFound: it is gone.
    """
    path = f"{paths.pod(pod.metadata.namespace, pod.metadata.name)}/status"
    return read(await client.request("PATCH", path, body=patch, content_type=STRATEGIC_MERGE_PATCH))


def _this(uid: str) -> dict[str, object]:
    return {"op": "test", "path": "/metadata/uid", "value": uid}


async def _patch(
    client: KubeClient, pod: WorkerPodObject, operations: list[dict[str, object]]
) -> WorkerPodObject:
    path = paths.pod(pod.metadata.namespace, pod.metadata.name)
    return read(await client.request("PATCH", path, body=operations, content_type=JSON_PATCH))


async def delete(client: KubeClient, pod: WorkerPodObject, *, uid: str, version: str) -> None:
    """Delete this very pod, in this very version; succeed if it is gone.

    Raises:
        Conflict: it has changed since.
    """
    await writes.delete_pod(
        client,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=PodUid(uid),
        version=version,
    )
