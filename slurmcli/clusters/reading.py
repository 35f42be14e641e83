"""Read what there is of Slurms in pods, and ask one of them."""

import asyncio
from datetime import UTC, datetime
from typing import Final, TypeVar

from bridge.slurm import inspection
from slurmcli import output
from slurmcli.access import Access
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTERS
from slurmoperator.daemons.part import PARTS
from slurmoperator.diagnosis import parts
from slurmoperator.diagnosis.parts import DAEMONS, NamespaceObjects, SlurmInPods
from slurmoperator.nodesets.nodeset import NODE_SETS
from slurmoperator.nodesets.worker_pods import WORKER_PODS
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import APP_LABEL
from slurmruntime.kube import lists
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Forbidden, NotFound
from slurmruntime.kube.resource import ResourceKind
from slurmruntime.slurm.errors import SlurmError

T = TypeVar("T")

_PODS: Final = {"labelSelector": f"{APP_LABEL} in ({','.join(DAEMONS.values())})"}


async def objects(client: KubeClient, namespace: str = "") -> NamespaceObjects:
    """Return what there is in a namespace, or in all of them; kinds that may not be read are left out with a warning.

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
    found = await asyncio.gather(*(read(kind, f"{name}s") for name, kind in PARTS.items()))
    return NamespaceObjects(
        clusters=clusters,
        node_sets=node_sets,
        pods=pods,
        parts=[each for kind in found for each in kind],
    )


async def slurm(opened: Access, found: NamespaceObjects, namespace: str, name: str) -> SlurmInPods:
    """Return one Slurm in pods with what it says itself, if it is the one that `--slurm-url` names."""
    own = parts.belonging(found, namespace, name)
    is_asked = await _is_that_of(opened, own)
    return SlurmInPods(
        namespace=namespace,
        name=name,
        objects=own,
        queue=await opened.queue() if is_asked else None,
        slurm_nodes=await opened.slurm_nodes() if is_asked else None,
        now=datetime.now(UTC),  # noqa: TID251  # a person runs a command now
    )


async def _is_that_of(opened: Access, own: NamespaceObjects) -> bool:
    """Check whether Slurm was given and is this one: a shell may have the address of another."""
    if opened.slurm is None:
        return False
    try:
        there = await inspection.cluster_name(opened.slurm)
    except SlurmError as error:
        output.say(f"warning: Slurm's side is missing: {error}")
        return False
    read = (part.whole for part in own.parts if isinstance(part.whole, ControllerObject))
    wanted = next((each.cluster_name for each in read), "")
    if there and wanted and there != wanted:
        output.say(
            f"warning: Slurm's side is missing: --slurm-url is that of cluster {there}, expected {wanted}"
        )
        return False
    return True
