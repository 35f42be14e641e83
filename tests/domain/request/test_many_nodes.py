"""What choosing among ten thousand nodes costs, and what Slurm is sent of it."""

from bridge.domain.request import candidates
from slurmruntime.values import hostlist
from tests.make import placing as build


def test_no_job_excludes_more_than_slurm_can_keep_for_ten_thousand() -> None:
    """Names without any order, of which few are left out by features."""
    kube_nodes = [
        build.kube_node(
            f"ip-{n * 7919 % 10_000:04}-{'x' * 30}.internal", labels={"pool": str(n % 9)}
        )
        for n in range(10_000)
    ]
    slurm_nodes = [build.slurm_node(node.name) for node in kube_nodes]
    many = candidates.pool(kube_nodes, slurm_nodes, build.CLUSTER)

    found = candidates.choose(build.pod(node_selector={"pool": "3"}), many)

    assert found.problem.endswith("publish labels (pool) in controllers.node_features")
    few = candidates.pool(kube_nodes[:5000], slurm_nodes[:5000], build.CLUSTER)
    excluded = candidates.choose(build.pod(node_selector={"pool": "3"}), few).excluded_nodes
    assert 4444 == len(excluded)
    assert len(hostlist.compress(excluded)) <= candidates.MOST_NAMED_BYTES
