"""SlurmClusters of namespaces that this operator does not serve."""

import pytest

from slurmoperator.rendering.site import NamespaceScope
from tests.slurmoperator.clusters.peers import SIX_LINES, ClusterLeaders
from tests.virtual_time import VirtualClock, run


@pytest.mark.parametrize("has_workers", [False, True])
def test_a_deleted_one_goes_when_it_has_no_workers(*, has_workers: bool) -> None:
    """Its finalizer is ours: nobody else would take it off, and its namespace could never go."""

    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api.create_cluster(SIX_LINES if has_workers else {"nodes": []})
        await leaders.lead()
        leaders.served = NamespaceScope(frozenset({"another"}))
        leaders.api.leave("SlurmCluster", "slurm")
        await leaders.lead()
        if not has_workers:
            assert not leaders.api.of("SlurmCluster")
            return
        assert ("False", "NotServed") == leaders.api.told("Accepted")[:2]
        (workers,) = leaders.api.of("NodeSet").values()
        assert "deletionTimestamp" not in workers["metadata"]

    run(main)
