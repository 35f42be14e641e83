"""Each read and each write of the loop over SlurmClusters fails in turn, and its leader dies at each write; and what it says when it cannot go on."""

from typing import Any

import pytest

from slurmruntime.kube import errors
from tests.make.trouble import Dead, Fault, Trouble, dying, first_and_last
from tests.slurmoperator import examples
from tests.slurmoperator.clusters.peers import SIX_LINES, ClusterLeaders
from tests.slurmoperator.examples import BY_NAME
from tests.virtual_time import VirtualClock, run

GPU = {"name": "gpu", "replicas": 1}
FIRST = {**SIX_LINES, "nodes": [*SIX_LINES["nodes"], GPU], "configFiles": {"cgroup.conf": "a"}}
TAKEN = examples.path(BY_NAME["Controller"], "slurm", "slurm")


async def lead(leaders: ClusterLeaders) -> None:
    try:
        await leaders.lead()
    except* Dead:
        await leaders.lead()


def made(leaders: ClusterLeaders) -> set[tuple[str, str]]:
    """Kind and name of all that is there and not on its way out."""
    return {
        (manifest["kind"], manifest["metadata"]["name"])
        for manifest in leaders.api.objects.values()
        if "deletionTimestamp" not in manifest["metadata"]
    }


async def whole_life(leaders: ClusterLeaders) -> None:
    """Made, changed, deleted while it has workers, and gone."""
    api = leaders.api
    api.create_cluster(FIRST)
    await lead(leaders)
    assert "True" == api.told("Ready")[0]
    both = {("NodeSet", "slurm-worker-cpu"), ("NodeSet", "slurm-worker-gpu")}
    assert both | {("ConfigMap", "slurm-config-extra"), ("LoginSet", "slurm-login")} < made(leaders)

    api.change("SlurmCluster", "slurm", **SIX_LINES, configFiles=...)
    await lead(leaders)
    assert "True" == api.told("Ready")[0]
    kept = {("NodeSet", "slurm-worker-cpu"), ("LoginSet", "slurm-login")}
    kept |= {("Controller", "slurm"), ("RestApi", "slurm"), ("Secret", "slurm-sssd-conf")}
    assert kept | {("SlurmCluster", "slurm")} == made(leaders)
    assert "configFileRefs" not in api.of("Controller")["slurm"]["spec"]
    api.remove("NodeSet", "slurm-worker-gpu")  # its jobs have ended

    api.leave("SlurmCluster", "slurm")
    await lead(leaders)
    status, reason, message = api.told("Ready")
    assert ("False", "Deleting") == (status, reason)
    assert message.endswith("waiting for the jobs on the workers of NodeSet slurm-worker-cpu")
    assert "deletionTimestamp" in api.of("NodeSet")["slurm-worker-cpu"]["metadata"]
    assert kept - {("NodeSet", "slurm-worker-cpu")} == made(leaders)

    api.remove("NodeSet", "slurm-worker-cpu")
    await lead(leaders)
    assert not api.of("SlurmCluster")


@pytest.mark.parametrize("fault", Fault)
def test_whatever_write_fails_a_slurm_comes_and_goes(fault: Fault) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = ClusterLeaders(clock)
        await whole_life(calm)
        writes = len(calm.trouble.writes)
        assert 12 <= writes <= 30
        for at in range(1, writes + 1):
            await whole_life(ClusterLeaders(clock, Trouble(fault, at=at)))

    run(main)


def test_whatever_read_fails_a_slurm_comes_and_goes() -> None:
    async def main(clock: VirtualClock) -> None:
        calm = ClusterLeaders(clock)
        await whole_life(calm)
        for at in first_and_last(calm.trouble.reads):
            await whole_life(ClusterLeaders(clock, Trouble(at_read=at)))

    run(main)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_leader_may_die_at_any_write(*, is_done: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = ClusterLeaders(clock)
        await whole_life(calm)
        for at in range(1, len(calm.trouble.writes) + 1):
            leaders = ClusterLeaders(clock)
            died = dying(leaders.trouble, at, is_done=is_done)
            await whole_life(leaders)
            assert died, "there is a write at which it did not die"

    run(main)


def test_when_nothing_changes_nothing_is_written() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(FIRST)
        await leaders.lead()
        count = len(leaders.trouble.writes)
        await leaders.lead()
        assert [] == leaders.trouble.writes[count:]

    run(main)


def owned(leaders: ClusterLeaders) -> set[str]:
    """What has an owner."""
    return {
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for manifest in leaders.api.objects.values()
        if manifest["metadata"].get("ownerReferences")
    }


def test_an_orphaned_cluster_keeps_its_parts_though_the_garbage_collector_sees_none() -> None:
    """As it does for half a minute after the CRDs were created: then it deletes with the owner what it has missed."""

    async def life(leaders: ClusterLeaders) -> None:
        leaders.api.create_cluster(FIRST)
        await lead(leaders)
        before = made(leaders)
        assert "NodeSet slurm-worker-cpu" in owned(leaders)
        leaders.api.leave("SlurmCluster", "slurm", "orphan")
        await lead(leaders)
        assert set() == owned(leaders)
        assert before - {("SlurmCluster", "slurm")} == made(leaders)
        assert ["orphan"] == leaders.api.of("SlurmCluster")["slurm"]["metadata"]["finalizers"]

    async def main(clock: VirtualClock) -> None:
        calm = ClusterLeaders(clock)
        await life(calm)
        for at in range(1, len(calm.trouble.writes) + 1):
            await life(ClusterLeaders(clock, Trouble(Fault.LOST_REPLY, at=at)))

    run(main)


def test_workers_that_no_watch_has_told_keep_a_deleted_cluster() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(SIX_LINES)
        await leaders.lead()
        unseen = leaders.api.objects.pop(
            examples.path(BY_NAME["NodeSet"], "slurm", "slurm-worker-cpu")
        )
        leaders.api.leave("SlurmCluster", "slurm")

        def appears(what: str, do: Any, *, fail: Any) -> Any:
            """It is there again before anybody looks, and nobody is told."""
            leaders.api.objects[examples.path(BY_NAME["NodeSet"], "slurm", "slurm-worker-cpu")] = (
                unseen
            )
            return reads(what, do, fail=fail)

        reads = leaders.trouble.read
        leaders.trouble.read = appears  # type: ignore[method-assign]  # a watch that lags
        await leaders.lead()
        assert "NodeSet slurm-worker-cpu" in leaders.api.told("Ready")[2]

    run(main)


def test_a_nodeset_that_is_not_ours_any_more_is_not_said_to_wait_for_jobs() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(FIRST)
        await leaders.lead()
        gpu = leaders.api.of("NodeSet")["slurm-worker-gpu"]
        gpu["metadata"]["managedFields"] = [
            {"manager": "argocd", "operation": "Apply", "fieldsV1": {}}
        ]
        leaders.api.leave("SlurmCluster", "slurm")
        await leaders.lead()
        message = leaders.api.told("Ready")[2]
        assert "waiting for the jobs on the workers of NodeSet slurm-worker-cpu;" in message
        assert (
            "NodeSet slurm-worker-gpu belongs to it, but another manager has taken it over"
            in message
        )
        assert "deletionTimestamp" not in gpu["metadata"]

    run(main)


def test_a_conflict_over_a_field_that_cannot_be_left_is_told_and_costs_only_its_object() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        apply = leaders.api._apply

        def taken(path: str, body: Any, params: Any) -> bytes:
            if path == TAKEN:
                field = ".metadata.labels.slurm-bridge.dev/cluster"
                text = f'conflict with "argocd": {field}'
                raise errors.Conflict(
                    "PATCH", path, status=409, message=text, fields=frozenset({field})
                )
            return apply(path, body, params)

        leaders.api._apply = taken  # type: ignore[method-assign]  # as the API server refuses
        leaders.api.create_cluster(SIX_LINES)
        await leaders.lead()
        status, reason, message = leaders.api.told("Ready")
        assert ("False", "Failing") == (status, reason)
        assert 'conflict with "argocd": .metadata.labels' in message
        assert "slurm-bridge.dev/take-over=true" in message
        assert ("NodeSet", "slurm-worker-cpu") in made(leaders)
        assert ("LoginSet", "slurm-login") in made(leaders)

    run(main)


def test_an_object_that_somebody_has_deleted_is_told_and_costs_only_itself() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(SIX_LINES)
        await leaders.lead()
        leaders.api.leave("NodeSet", "slurm-worker-cpu")
        leaders.api.change("SlurmCluster", "slurm", nodes=[*SIX_LINES["nodes"], GPU])
        await leaders.lead()
        message = leaders.api.told("Ready")[2]
        assert "NodeSet slurm/slurm-worker-cpu is being deleted" in message
        assert ("NodeSet", "slurm-worker-gpu") in made(leaders)
        leaders.api.remove("NodeSet", "slurm-worker-cpu")
        await leaders.lead()
        assert "True" == leaders.api.told("Ready")[0]
        assert ("NodeSet", "slurm-worker-cpu") in made(leaders)

    run(main)
