"""Looks up which CPUs Slurm gave a pod, for the node's agent. They are written together with the pin, without an extra write."""

import structlog

from bridge.domain.gang import seating
from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.cores import cpu_list, topology
from bridge.domain.model.jobs import SlurmJob
from bridge.slurm import nodes
from bridge.slurm.allocated import cpus
from slurmclient.errors import Malformed
from slurmruntime.slurm.client import SlurmClient

_log = structlog.get_logger(__name__)


async def of_pod(slurm: SlurmClient, action: Assign, job: SlurmJob | None) -> str:
    """Return a pod's CPUs on its node, as Slurm numbers them: two requests for each pod.

    "" on a node with a slurmd, which pins CPUs itself, for a heterogeneous job, where a gang's CPUs
    cannot be divided, and where Slurm's answer names none or makes no sense: the pod starts anyway,
    and may use all processors for its whole life, because this is written only once.

    Raises:
        SlurmError: decide again later; the job may have ended in the meantime.
    """
    if job is not None and job.parts:
        return ""
    node = await nodes.node(slurm, action.slurm_node)
    if not node.is_external:
        return ""
    try:
        job_cpus = await cpus.of_job(
            slurm,
            action.job_id,
            action.slurm_node,
            sluid=action.sluid,
            threads=node.threads_per_core,
        )
    except Malformed as error:
        _log.warning("pod.cpus_unreadable", job_id=action.job_id, error=str(error))
        return ""
    own = topology.portion(job_cpus, **seating.place(action))
    if not own:
        _log.warning(
            "pod.cpus_untold",
            job_id=action.job_id,
            slurm_node=action.slurm_node,
            job_has=cpu_list.render(job_cpus),
        )
    return cpu_list.render(own)
