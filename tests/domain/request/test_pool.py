"""Which nodes the pool has, and under which names."""

from bridge.domain.request import candidates
from slurmruntime.values.ids import SlurmNode
from tests.make import placing as build


def test_only_slurm_nodes_with_this_clusters_mark_are_bridged() -> None:
    strangers = [
        build.slurm_node("k1", features=("slurm-bridge", "slurm-bridge.dev/cluster=other"))
    ]
    found = candidates.pool([build.kube_node("k1")], strangers, build.CLUSTER)

    assert {} == found.nodes


def test_slurms_name_of_a_node_may_be_another() -> None:
    kube_nodes = [
        build.kube_node("k1.example.com", labels={"slinky.slurm.net/slurm-nodename": "s1"})
    ]
    found = candidates.pool(kube_nodes, [build.slurm_node("s1")], build.CLUSTER)

    assert "k1.example.com" == found.kube_node(SlurmNode("s1"))
    assert found.kube_node(SlurmNode("k1.example.com")) is None
