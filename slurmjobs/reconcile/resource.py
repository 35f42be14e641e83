"""Read and write SlurmJobs in the API; each write is guarded."""

from functools import partial

import msgspec

from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.kube import errors, paths
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind, malformed
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names


def read(resource: JobResource, body: Json) -> SlurmJobObject:
    """Decode a SlurmJob.

    Raises:
        Malformed: it is not one.
    """
    try:
        return resource.read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(resource.kind, error) from error


def kind_of(resource: JobResource) -> ResourceKind[SlurmJobObject]:
    """Return how a reflector reads all objects of a resource, keyed by uid."""
    return ResourceKind(
        path=paths.collection(resource.api_version, resource.plural),
        read=partial(read, resource),
        identify=lambda job: ObjectVersion(
            job.metadata.uid, job.metadata.resource_version, job.full_name
        ),
    )


async def get(
    client: KubeClient, resource: JobResource, namespace: str, name: str
) -> SlurmJobObject:
    """Return the SlurmJob that has this name now; the caller must compare the uid.

    Raises:
        NotFound: there is none of that name.
    """
    return read(resource, await client.request("GET", _path(resource, namespace, name)))


async def add_finalizer(client: KubeClient, job: SlurmJobObject) -> SlurmJobObject:
    """Add our finalizer to exactly this version of the object.

    Raises:
        Conflict: it has changed.
        NotFound: it is gone.
    """
    present = job.metadata.finalizers
    add = json_patch.append("/metadata/finalizers", names.SLURM_JOB_FINALIZER, to=present)
    return await _patch(client, job, [*_unchanged(job), add])


async def remove_finalizer(client: KubeClient, job: SlurmJobObject) -> None:
    """Remove our finalizer; succeed if the object is gone.

    Raises:
        Conflict: its finalizers have changed.
    """
    index = (job.metadata.finalizers or ()).index(names.SLURM_JOB_FINALIZER)
    path = f"/metadata/finalizers/{index}"
    same = json_patch.test("/metadata/uid", job.metadata.uid)
    ours = json_patch.test(path, names.SLURM_JOB_FINALIZER)
    await _patch(client, job, [same, ours, json_patch.remove(path)])


async def write_status(
    client: KubeClient, job: SlurmJobObject, status: SlurmJobStatus
) -> SlurmJobObject:
    """Write the complete status of exactly this version of the object.

    Raises:
        Conflict: it has changed.
        NotFound: it is gone.
    """
    add = json_patch.add("/status", job.status_body(status))
    return await _patch(client, job, [*_unchanged(job), add], subresource="/status")


async def delete(client: KubeClient, job: SlurmJobObject) -> None:
    """Delete exactly this object; succeed if it is gone."""
    options = {"preconditions": {"uid": job.metadata.uid}, "propagationPolicy": "Background"}
    path = _path(job.resource, job.metadata.namespace, job.metadata.name)
    try:
        await client.request("DELETE", path, body=options)
    except (errors.NotFound, errors.Conflict):
        return  # the only precondition is the uid


async def _patch(
    client: KubeClient,
    job: SlurmJobObject,
    operations: list[Operation],
    *,
    subresource: str = "",
) -> SlurmJobObject:
    path = _path(job.resource, job.metadata.namespace, job.metadata.name) + subresource
    body = await client.request("PATCH", path, body=operations, content_type=JSON_PATCH)
    return read(job.resource, body)


def _path(resource: JobResource, namespace: str, name: str) -> str:
    return paths.collection(resource.api_version, resource.plural, namespace) + paths.of(name)


def _unchanged(job: SlurmJobObject) -> list[Operation]:
    return json_patch.unchanged(job.metadata.uid, job.metadata.resource_version)
