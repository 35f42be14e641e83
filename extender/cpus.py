"""Tell a node's agent which CPUs Slurm gave a pod: written with its pin, so that it costs no write."""

from bridge.domain.gang import seating
from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.cores import cpu_list, topology
from bridge.domain.model.jobs import SlurmJob
from bridge.slurm import nodes
from bridge.slurm.allocated import cpus
from bridge.slurm.client import SlurmClient


class CpuReader:
    """Reads what Slurm gave: two requests for each pod that gets its node."""

    def __init__(self, slurm: SlurmClient) -> None:
        self._slurm = slurm

    async def told(self, action: Assign, job: SlurmJob | None) -> str:
        """Return a pod's CPUs on its node, as Slurm numbers them.

        "" on a node with a slurmd, which numbers its own, for a heterogeneous job, and where a gang's
        CPUs cannot be divided.

        Raises:
            SlurmError: decide again later.
        """
        if job is not None and job.parts:
            return ""
        node = await nodes.node(self._slurm, action.slurm_node)
        if not node.is_external:
            return ""
        ref = action.sluid or action.job_id
        found = await cpus.given(self._slurm, ref, action.slurm_node, threads=node.threads_per_core)
        return cpu_list.written(topology.portion(found, **seating.place(action, job)))
