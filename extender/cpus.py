"""Tell a node's agent which CPUs Slurm gave a pod: written with its pin, so that it costs no write."""

import structlog

from bridge.domain.gang import seating
from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.cores import cpu_list, topology
from bridge.domain.model.jobs import SlurmJob
from bridge.slurm import nodes
from bridge.slurm.allocated import cpus
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import Malformed

_log = structlog.get_logger(__name__)


class CpuReader:
    """Reads what Slurm gave: two requests for each pod that gets its node."""

    def __init__(self, slurm: SlurmClient) -> None:
        self._slurm = slurm

    async def told(self, action: Assign, job: SlurmJob | None) -> str:
        """Return a pod's CPUs on its node, as Slurm numbers them.

        "" on a node with a slurmd, which numbers its own, for a heterogeneous job, where a gang's CPUs
        cannot be divided, and where Slurm's answer names none or makes no sense: the pod starts all the
        same, and may use all processors for its whole life, as this is written once.

        Raises:
            SlurmError: decide again later; the job may have ended meanwhile.
        """
        if job is not None and job.parts:
            return ""
        node = await nodes.node(self._slurm, action.slurm_node)
        if not node.is_external:
            return ""
        try:
            found = await cpus.given(
                self._slurm,
                action.job_id,
                action.slurm_node,
                sluid=action.sluid,
                threads=node.threads_per_core,
            )
        except Malformed as error:
            _log.warning("pod.cpus_unreadable", job_id=action.job_id, error=str(error))
            return ""
        own = topology.portion(found, **seating.place(action))
        if not own:
            _log.warning(
                "pod.cpus_untold",
                job_id=action.job_id,
                slurm_node=action.slurm_node,
                job_has=cpu_list.written(found),
            )
        return cpu_list.written(own)
