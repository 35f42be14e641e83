"""Gather the facts with which `why` explains a worker or an object of a Slurm in pods."""

from bridge.domain.diagnosis.why import Diagnosis
from slurmcli.access import Access
from slurmcli.clusters import reading
from slurmoperator.diagnosis import answering
from slurmoperator.diagnosis.answering import WorkerQuery
from slurmoperator.diagnosis.parts import NamespaceObjects
from slurmoperator.nodesets import worker_pods
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER
from slurmoperator.objects.labels import CLUSTER_LABEL
from slurmruntime.kube import paths


async def of_worker(opened: Access, namespace: str, name: str) -> Diagnosis:
    """Explain the state of the worker in a pod.

    Raises:
        KubeError: the pod does not exist or cannot be read.
    """
    pod = worker_pods.WORKER_PODS.read(await opened.kube.request("GET", paths.pod(namespace, name)))
    controller = pod.metadata.labels.get(CLUSTER_LABEL, "")
    objects = await reading.objects(opened.kube, namespace) if opened.slurm else NamespaceObjects()
    slurm = await reading.slurm(opened, objects, namespace, controller)
    return answering.explain_worker(
        WorkerQuery(pod=pod, queue=slurm.queue, slurm_nodes=slurm.slurm_nodes)
    )


async def of_object(opened: Access, kind: str, namespace: str, name: str) -> Diagnosis:
    """Explain the state of an object.

    kind: as on the command line: singular, plural, or a short name.

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
    objects = await reading.objects(opened.kube, namespace)
    asked = answering.find_object(objects, asked_kind.kind, name)
    slurm = None
    if asked.controller:
        slurm = await reading.slurm(opened, objects, namespace, asked.controller)
    return answering.explain_object(asked, slurm)
