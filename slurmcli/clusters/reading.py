"""Read the Kubernetes objects of Slurms in pods, and query one of those Slurms."""

import asyncio
from datetime import UTC, datetime
from typing import Final, TypeVar

from bridge.domain.diagnosis.why import Diagnosis
from slurmcli import output
from slurmcli.access import Access
from slurmclient.errors import SlurmError
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTERS
from slurmoperator.daemons.part import PARTS
from slurmoperator.diagnosis import answering, parts
from slurmoperator.diagnosis.parts import DAEMONS, NamespaceObjects, SlurmInPods
from slurmoperator.nodesets import worker_pods
from slurmoperator.nodesets.nodeset import NODE_SETS
from slurmoperator.nodesets.worker_pods import WORKER_PODS
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER
from slurmoperator.objects.labels import APP_LABEL, CLUSTER_LABEL
from slurmruntime.kube import lists, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Forbidden, NotFound
from slurmruntime.kube.resource import ResourceKind
from slurmruntime.slurm import inspection

T = TypeVar("T")

_PODS: Final = {"labelSelector": f"{APP_LABEL} in ({','.join(DAEMONS.values())})"}


async def objects(client: KubeClient, namespace: str = "") -> NamespaceObjects:
    """Read the objects of one namespace, or of all; kinds the caller may not read are left out with a warning.

    Raises:
        KubeError: the API server does not answer.
    """

    async def read(kind: ResourceKind[T], what: str) -> list[T]:
        params = _PODS if what == "pods" else {}
        try:
            return await lists.readable(client, kind, namespace=namespace, params=params)
        except NotFound:  # its definition is not installed
            return []
        except Forbidden as error:
            output.say(f"warning: {what} are missing: {error}")
            return []

    clusters, node_sets, pods = await asyncio.gather(
        read(SLURM_CLUSTERS, "SlurmClusters"),
        read(NODE_SETS, "NodeSets"),
        read(WORKER_PODS, "pods"),
    )
    by_kind = await asyncio.gather(*(read(kind, f"{name}s") for name, kind in PARTS.items()))
    return NamespaceObjects(
        clusters=clusters,
        node_sets=node_sets,
        pods=pods,
        parts=[part for kind in by_kind for part in kind],
    )


async def slurm(
    opened: Access, namespace_objects: NamespaceObjects, namespace: str, name: str
) -> SlurmInPods:
    """Return one Slurm in pods, with its queue and nodes if `--slurm-url` is its address."""
    own = parts.select(namespace_objects, namespace, name)
    is_asked = await _is_at_our_url(opened, own)
    return SlurmInPods(
        namespace=namespace,
        name=name,
        objects=own,
        queue=await opened.queue() if is_asked else None,
        slurm_nodes=await opened.slurm_nodes() if is_asked else None,
        now=datetime.now(UTC),  # noqa: TID251  # a person runs a command now
    )


async def _is_at_our_url(opened: Access, own: NamespaceObjects) -> bool:
    """Check whether we can query Slurm and it is this one: a shell may have the address of another."""
    if opened.slurm is None:
        return False
    try:
        actual = await inspection.cluster_name(opened.slurm)
    except SlurmError as error:
        output.say(f"warning: Slurm's side is missing: {error}")
        return False
    read = (part.parsed for part in own.parts if isinstance(part.parsed, ControllerObject))
    wanted = next((controller.cluster_name for controller in read), "")
    if actual and wanted and actual != wanted:
        output.say(
            f"warning: Slurm's side is missing: --slurm-url is that of cluster {actual}, expected {wanted}"
        )
        return False
    return True


async def of_worker(opened: Access, namespace: str, name: str) -> Diagnosis:
    """Explain the state of the worker in a pod.

    Raises:
        KubeError: the pod does not exist or cannot be read.
    """
    pod = worker_pods.WORKER_PODS.read(await opened.kube.request("GET", paths.pod(namespace, name)))
    controller = pod.metadata.labels.get(CLUSTER_LABEL, "")
    around = await objects(opened.kube, namespace) if opened.slurm else NamespaceObjects()
    answer = await slurm(opened, around, namespace, controller)
    return answering.explain_worker(pod, answer.queue, answer.slurm_nodes)


async def of_object(opened: Access, kind: str, namespace: str, name: str) -> Diagnosis:
    """Explain the state of an object; its kind is singular, plural, or a short name, as on the command line.

    Raises:
        KubeError: it does not exist or cannot be read.
    """
    asked_kind = next(
        known
        for known in (*KINDS, SLURM_CLUSTER)
        if kind in (known.kind.lower(), known.plural, *known.short_names)
    )
    where = paths.collection(
        f"{asked_kind.group}/{asked_kind.version}", asked_kind.plural, namespace
    )
    await opened.kube.request("GET", where + paths.of(name))  # raises NotFound if there is none
    around = await objects(opened.kube, namespace)
    controller = answering.controller_of(around, asked_kind.kind, name)
    answer = await slurm(opened, around, namespace, controller) if controller else None
    return answering.explain_object(around, asked_kind.kind, name, answer)
