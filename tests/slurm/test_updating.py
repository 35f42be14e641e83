"""Jobs that name a node which Slurm no longer has: slurmctld refuses every update of them, ours get through.

A FUTURE record stands in for the node. Nothing of it may stay, and nobody may be given it.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.slurm import jobs, updating
from sandbox.client import Sandbox
from slurmclient import errors
from slurmclient.wire.reading import Answer
from slurmruntime.model import nodes
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import INVALID_NODE_NAME
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, SlurmNode
from tests.servers import wait_until
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import CLUSTER, identity, spec

GONE = tuple(map(SlurmNode, ("goner-1", "goner-2", "lost")))


@pytest.fixture
def leaving(slurm: Sandbox) -> Iterator[None]:
    """Nodes that jobs may name."""
    for name in GONE:
        shape = ("nodeaddr=127.0.0.1", "cpus=1", "realmemory=100", "features=slurm-bridge")
        slurm.run("scontrol", "create", f"nodename={name}", *shape, "state=CLOUD")
    yield
    assert not [name for name in GONE if is_known(slurm, name)]


def is_known(slurm: Sandbox, name: str) -> bool:
    return name in slurm.run("scontrol", "--future", "--oneliner", "show", "nodes")


def go(slurm: Sandbox) -> None:
    slurm.run("scontrol", "delete", f"nodename={','.join(GONE)}")


async def read(client: SlurmClient, job_id: JobId) -> SlurmJob:
    job = await jobs.job(client, job_id)
    assert isinstance(job, SlurmJob)
    return job


@pytest.mark.usefixtures("leaving")
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"excluded_nodes": GONE, "hold": True}, id="excluded, waiting"),
        pytest.param({"required_nodes": GONE[:1], "hold": True}, id="required, waiting"),
        pytest.param({"excluded_nodes": GONE, "time_limit_min": 10}, id="excluded, running"),
    ],
)
async def test_a_job_that_names_nodes_that_are_gone_can_be_updated(
    client: SlurmClient, slurm: Sandbox, submit: Submit, asked: dict[str, object]
) -> None:
    whose = identity()
    job_id = await submit(spec(whose, **asked))
    is_waiting = "hold" in asked
    if not is_waiting:
        wait_until(lambda: slurm.run("squeue", "-ho%T", f"-j{job_id}").strip() == "RUNNING", 30)
    go(slurm)
    body = {"comment": "anything"}
    with pytest.raises(errors.Declined) as refused:
        await client.call("test", "slurm_post_job", {"job_id": job_id}, body=body, answer=Answer)
    assert INVALID_NODE_NAME == refused.value.error_number

    await jobs.amend_identity(client, job_id, whose, lambda old: replace(old, cause="misfit"))

    job = await read(client, job_id)
    assert "misfit" == job.identity.cause
    if is_waiting:
        kept = {"required": (), "excluded": ()}
        await jobs.set_node_lists(client, job_id, sluid=job.sluid, **kept)
        job = await read(client, job_id)
        assert ((), ()) == (job.required_nodes, job.excluded_nodes)
    else:
        longer = {"minutes": 20, "true_min": 10, "expected_min": 10}
        assert await jobs.set_time_limit(client, job, **longer)
    await jobs.cancel_for(client, await read(client, job_id), lambda old: replace(old, cause="x"))
    job = await read(client, job_id)
    assert (JobPhase.ENDED, "x") == (job.phase, job.identity.cause)


async def test_what_a_process_that_died_has_left_behind_is_removed(
    client: SlurmClient, slurm: Sandbox
) -> None:
    async with updating.standing_in(client, GONE[:1], CLUSTER):
        async with updating.standing_in(client, GONE[:1], CLUSTER):
            assert is_known(slurm, GONE[0])
        assert is_known(slurm, GONE[0])
    assert not is_known(slurm, GONE[0])
    for name in GONE:
        features = f"{nodes.cluster_feature(CLUSTER)},{names.PARKED_FEATURE}"
        shape = ("cpus=1", "state=FUTURE", f"features={features}")
        slurm.run("scontrol", "create", f"nodename={name}", *shape)
    assert "lost" not in slurm.run("sinfo", "--noheader", "--Node")

    await updating.remove_stand_ins(client, CLUSTER)
    await updating.remove_stand_ins(client, CLUSTER)

    assert not [name for name in GONE if is_known(slurm, name)]
