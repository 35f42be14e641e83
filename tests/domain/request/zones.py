"""A pool of three nodes in three zones."""

from bridge.domain.request import candidates
from bridge.domain.request.candidates import Pool
from slurmruntime.model.nodes import taints_feature
from tests.make import placing as build
from tests.make.placing import MARK, taint

OURS = f"{MARK}&{build.NO_TAINTS}"
"""Nodes of the cluster that have no taint, nor get one while the job waits."""

ZONES = {"k1": "a", "k2": "b", "k3": "c"}


def pool(*, published: bool = True, taints: dict[str, str] | None = None) -> Pool:
    """Three nodes in three zones, k1 and k2 with the label `disk=ssd`."""
    labels = {
        name: {"zone": zone} | ({"disk": "ssd"} if zone != "c" else {})
        for name, zone in ZONES.items()
    }
    kube_nodes = [
        build.kube_node(
            name,
            labels=labels[name],
            taints=tuple(taint(t) for t in [(taints or {}).get(name)] if t),
        )
        for name in ZONES
    ]
    slurm_nodes = [
        build.slurm_node(
            node.name,
            features=(
                MARK,
                *([taints_feature(node)] if published else []),
                *(f"{key}={value}" for key, value in labels[node.name].items() if published),
            ),
        )
        for node in kube_nodes
    ]
    return candidates.pool(kube_nodes, slurm_nodes, build.CLUSTER)
