"""Gather for `why` what explains a worker, or an object of a Slurm in pods."""

from bridge.domain.diagnosis.why import Diagnosis
from slurmcli.access import Access
from slurmcli.clusters import reading
from slurmoperator.diagnosis import answering
from slurmoperator.diagnosis.answering import AskedWorker
from slurmoperator.diagnosis.parts import NamespaceObjects
from slurmoperator.nodesets import worker_pods
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER
from slurmoperator.objects.labels import CLUSTER_LABEL
from slurmruntime.kube import paths


async def of_worker(opened: Access, namespace: str, name: str) -> Diagnosis:
    """Explain how a worker stands, by the name of its pod.

    Raises:
        KubeError: there is none, or it cannot be read.
    """
    pod = worker_pods.read(await opened.kube.request("GET", paths.pod(namespace, name)))
    controller = pod.metadata.labels.get(CLUSTER_LABEL, "")
    found = await reading.objects(opened.kube, namespace) if opened.slurm else NamespaceObjects()
    slurm = await reading.slurm(opened, found, namespace, controller)
    return answering.of_worker(
        AskedWorker(pod=pod, queue=slurm.queue, slurm_nodes=slurm.slurm_nodes)
    )


async def of_object(opened: Access, kind: str, namespace: str, name: str) -> Diagnosis:
    """Explain how an object stands.

    kind: as on the command line: singular, plural, or a short name.

    Raises:
        KubeError: there is none, or it cannot be read.
    """
    meant = next(
        each
        for each in (*KINDS, SLURM_CLUSTER)
        if kind in (each.kind.lower(), each.plural, *each.short_names)
    )
    where = paths.collection(f"{meant.group}/{meant.version}", meant.plural, namespace)
    await opened.kube.request("GET", where + paths.of(name))  # or say that there is none
    found = await reading.objects(opened.kube, namespace)
    asked = answering.asked(found, meant.kind, name)
    slurm = None
    if asked.controller:
        slurm = await reading.slurm(opened, found, namespace, asked.controller)
    return answering.of_object(asked, slurm)
