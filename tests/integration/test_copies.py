"""A copy of the cluster, restored from a backup of etcd, has the same id: it ends none of the original's jobs.

Of the copy's controllers only the orphan collector runs here, among real peers: the others would fight over the nodes.
"""

import asyncio

import pytest

from bridge.reconcile.informers import Mirror
from bridge.reconcile.leadership import Leadership
from bridge.reconcile.program import opened
from bridge.settings.schema import Settings
from controllers.pods.orphans import Orphans
from sandbox.client import Sandbox
from slurmruntime.process import lifetime
from slurmruntime.process.lifetime import Service
from tests.integration.worlds import Worlds

PODS = 4
LOOKS_S = 0.5
LOOKED_FOR_S = 12.0
"""Longer than it takes to cancel an orphan whose pods were never seen."""


async def looked_for_orphans(kube: Sandbox, slurm: Sandbox, cluster_id: str) -> str | None:
    """What the collector of another cluster says of its health, after a while."""
    settings = Settings.model_validate(
        {
            "cluster_id": cluster_id,
            "kubernetes": {"kubeconfig": str(kube.kubeconfig), "namespace": "default"},
            "slurm": {"url": slurm.slurmrestd_url, "token_file": str(slurm.token_file)},
        }
    )
    stop = asyncio.Event()
    async with opened("controllers", settings) as program:
        mirror = Mirror(program.set_aside)
        term = Leadership(program, mirror, submits=False)
        orphans = Orphans(
            kube=program.kube,
            slurm=program.slurm,
            pods=mirror.pods,
            placeholders=term.placeholders,
            cluster=program.cluster,
            namespace=settings.kubernetes.namespace,
            interval_s=LOOKS_S,
            process=program.process,
        )
        parts = (
            *mirror.parts(program),
            Service(name="orphans", run=orphans.run),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(lifetime.run_parts(*parts, stop=stop))
            group.create_task(term.placeholders.run(stop, wake=lambda _: None))
            await program.clock.sleep(LOOKED_FOR_S)
            health = orphans.health()
            stop.set()
    return health


@pytest.mark.attack(
    "start a copy of the cluster from a backup of etcd, beside the original",
    "jobs of more than three pods that were never seen are cancelled only on an operator's word",
)
def test_a_copy_of_the_cluster_ends_none_of_its_jobs(
    control_plane: Sandbox, full_sandbox: Sandbox, worlds: Worlds
) -> None:
    uids = [worlds.submit(f"pod-{number}") for number in range(PODS)]
    for number in range(PODS):
        worlds.await_phase(f"pod-{number}", "Running")
    original = full_sandbox.admin.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]

    health = asyncio.run(looked_for_orphans(control_plane, full_sandbox, original))

    assert health is not None
    assert "placeholders were never seen: another cluster may have this one's id" in health
    assert ["RUNNING"] * PODS == [job.state for uid in uids for job in worlds.live(uid)]
    for number in range(PODS):
        pod = worlds.await_pod(f"pod-{number}", bool)
        assert "deletionTimestamp" not in pod["metadata"]
