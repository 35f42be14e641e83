"""Update jobs, including those that name a node which Slurm no longer has.

Before any update slurmctld looks up the nodes that a job requires or excludes. If one is gone, it refuses the
update (2018), whatever it changes, even these lists, and whether the job waits or runs; a waiting job may
start anywhere from then on, until an update succeeds (measured with 26.05). So a record of that name stands
in for the node while the job is updated. Its state is FUTURE: it can be looked up, but no job starts there
and `sinfo` does not show it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
from msgspec import Struct

from bridge.slurm import nodes
from slurmclient.errors import Declined, SlurmError, TooOld, Unavailable
from slurmclient.wire.reading import Answer
from slurmruntime.model import nodes as marks
from slurmruntime.slurm import records
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import INVALID_NODE_NAME, NODE_EXISTS
from slurmruntime.values import hostlist, names
from slurmruntime.values.ids import ClusterId, JobId, SlurmNode

_log = structlog.get_logger(__name__)

_FUTURE: Final = "FUTURE"
_TRIES: Final = 2


class _Record(Struct, frozen=True):
    name: str
    state: Sequence[str] = ()
    features: Sequence[str] = ()


class _Records(Answer, frozen=True):
    nodes: Sequence[_Record] | None = None


async def update(
    client: SlurmClient,
    operation: str,
    job_id: JobId,
    body: object,
    *,
    cluster: ClusterId,
    user: str = "",
) -> None:
    """Update a job, or one component of a heterogeneous job.

    Args:
        operation: for metrics and messages.
        cluster: the cluster whose mark a stand-in gets.
        user: the user to impersonate; "" for none.

    Raises:
        Declined: Slurm refuses the change; or (2018) no stand-in can be created, or another process
            has just removed its own: try again later.
        SlurmError: it was not changed.
    """

    async def send() -> None:
        await client.call(
            operation, "slurm_post_job", {"job_id": job_id}, body=body, answer=Answer, user=user
        )

    try:
        await send()
    except Declined as refusal:
        if refusal.error_number != INVALID_NODE_NAME:
            raise
        missing = await _missing_nodes(client, job_id)
        async with standing_in(client, missing, cluster, instead=refusal):
            await send()


@asynccontextmanager
async def standing_in(
    client: SlurmClient,
    missing: Sequence[SlurmNode],
    cluster: ClusterId,
    *,
    instead: Declined | None = None,
) -> AsyncIterator[None]:
    """Create stand-ins for these nodes, so that jobs that name them can be updated in the block.

    Args:
        missing: nodes that Slurm does not have; another process's stand-ins may exist already.
        cluster: the cluster whose mark the records get.
        instead: what to raise if they are refused.

    Raises:
        Declined: Slurm's table of nodes is full (MaxNodeCount).
        TooOld: the server cannot create nodes.
        SlurmError: they were not created.
    """
    is_ours = bool(missing)
    try:
        try:
            if missing:
                await _create(client, missing, cluster)
        except (Declined, TooOld) as error:
            is_ours = False
            if error.error_number != NODE_EXISTS:
                _log.warning("node.no_stand_in", error=str(error))
                raise instead or error from error
        yield
    finally:
        if is_ours:
            await asyncio.shield(_delete(client, missing))


async def remove_stand_ins(client: SlurmClient, cluster: ClusterId) -> None:
    """Remove stand-ins that a process of ours left behind: a node of that name could not register.

    Raises SlurmError if some may remain.
    """
    marked = {names.PARKED_FEATURE, marks.cluster_feature(cluster)}
    left = [
        SlurmNode(record.name)
        for record in await _all(client)
        if _FUTURE in record.state and marked <= set(record.features)
    ]
    if left:
        await nodes.delete(client, SlurmNode(hostlist.compress(left)))


async def _create(client: SlurmClient, missing: Sequence[SlurmNode], cluster: ClusterId) -> None:
    """Create all or none."""
    features = f"{marks.cluster_feature(cluster)},{names.PARKED_FEATURE}"
    size = "NodeAddr=127.0.0.1 CPUs=1 RealMemory=1"
    line = f"NodeName={hostlist.compress(missing)} State={_FUTURE} {size} Feature={features}"
    await client.call(
        "node.stand_in", "slurm_post_new_node", body={"node_conf": line}, answer=Answer
    )


async def _delete(client: SlurmClient, stand_ins: Sequence[SlurmNode]) -> None:
    """Delete stand-ins, even while this process stops; the controllers' leader removes what remains."""
    for tries_left in reversed(range(_TRIES)):
        try:
            await nodes.delete(client, SlurmNode(hostlist.compress(stand_ins)))
        except SlurmError as error:
            if tries_left and isinstance(error, Unavailable):
                continue
            _log.warning("node.stand_in_left", error=str(error))
        return


async def _missing_nodes(client: SlurmClient, job_id: JobId) -> list[SlurmNode]:
    existing = {record.name for record in await _all(client)}
    named = {
        name
        for job in await records.read(client, job_id)
        for text in (job.decoded.value.required_nodes, job.decoded.value.excluded_nodes)
        for name in hostlist.expand(text)
    }
    return sorted(map(SlurmNode, named - existing))


async def _all(client: SlurmClient) -> Sequence[_Record]:
    answer = await client.call(
        "node.list_all", "slurm_get_nodes", query={"flags": _FUTURE}, answer=_Records
    )
    return answer.nodes or ()
