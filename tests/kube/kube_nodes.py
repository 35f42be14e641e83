"""A single node, as our programs never read it: they list and watch."""

from bridge.domain.ids import KubeNode
from bridge.domain.model.nodes import KubeNodeFacts
from bridge.kube import node_objects, paths
from bridge.kube.client import KubeClient


async def read(client: KubeClient, name: KubeNode) -> KubeNodeFacts:
    """Read one node."""
    return node_objects.node(await client.request("GET", paths.of("api", "v1", "nodes", name)))
