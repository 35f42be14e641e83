"""`nodes`: the nodes of both systems side by side. Exit code 2 if they do not match."""

import asyncio
import sys

from bridge.domain.diagnosis import overview
from bridge.domain.diagnosis.overview import NodeRow
from bridge.domain.model.pods import BoundPod
from bridge.kube import decode
from slurmcli import access, installation, output
from slurmcli.access import Access
from slurmcli.line.options import FormatOption, ReleaseNamespace, Way
from slurmcli.output import Format, TableColumn
from slurmruntime.kube import lists, node_objects
from slurmruntime.kube.errors import Forbidden
from slurmruntime.values import names

MISMATCH = 2
"""Exit code."""

COLUMNS = (
    TableColumn("NODE", "kube_node"),
    TableColumn("SLURM", "slurm_node"),
    TableColumn("KUBERNETES", "kubernetes"),
    TableColumn("STATE", "slurm"),
    TableColumn("CPUS", "slurm_cpus"),
    TableColumn("USED", "used_cpus"),
    TableColumn("ALLOCATABLE", "cpus", wide=True),
    TableColumn("MIB", "slurm_memory_mib", wide=True),
    TableColumn("ALLOCATABLE MIB", "memory_mib", wide=True),
    TableColumn("GRES", "gres"),
    TableColumn("DEVICES", "devices"),
    TableColumn("CORES", "cores"),
    TableColumn("EXACTNESS", "exactness", wide=True),
    TableColumn("REASON", "reason"),
    TableColumn("OTHERS", "others", wide=True),
    TableColumn("MISMATCH", "mismatch"),
)


def command(
    *,
    way: Way,
    release_namespace: ReleaseNamespace = names.RELEASE_NAMESPACE,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the nodes of both systems, and where they do not match."""
    rows = access.run(way, lambda opened: _ask(opened, release_namespace))
    output.table(rows, COLUMNS, form, nothing="no node is handed to Slurm")
    sys.exit(MISMATCH if any(row.mismatch for row in rows) else 0)


async def _ask(opened: Access, release: str) -> list[NodeRow]:
    kube_nodes = await lists.listing(opened.kube, node_objects.NODES)
    slurm_nodes, others = await opened.slurm_nodes(), await _others(opened)
    (gpu_resources, milli_per_cpu), agents = await asyncio.gather(
        installation.counting(opened.kube, release), installation.agents(opened.kube, release)
    )
    return list(
        overview.rows(
            kube_nodes,
            slurm_nodes,
            others,
            gpu_resources=gpu_resources,
            milli_per_cpu=milli_per_cpu,
            agents=agents or (),
        )
    )


async def _others(opened: Access) -> list[BoundPod]:
    """Read the pods that Slurm did not place; none if the user may not list them."""
    ours = names.schedulers(names.SCHEDULER_NAME)
    not_ours = ",".join(("spec.nodeName!=", *(f"spec.schedulerName!={name}" for name in ours)))
    try:
        return await lists.listing(
            opened.kube, decode.BOUND_PODS, params={"fieldSelector": not_ours}
        )
    except Forbidden:
        return []
