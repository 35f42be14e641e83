"""A single node, as our programs never read it: they list and watch."""

from slurmruntime.kube import node_objects, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.ids import KubeNode


async def read(client: KubeClient, name: KubeNode) -> KubeNodeFacts:
    """Read one node."""
    return node_objects.node(await client.request("GET", paths.of("api", "v1", "nodes", name)))
