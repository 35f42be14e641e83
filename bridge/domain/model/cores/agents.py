"""Which nodes have a live node agent: the chart's DaemonSet has a Ready pod there.

The agent is ready once it has examined its node, and not while nothing there can be pinned
(`agent.pinner`). Kubernetes marks a dead node's pods as unready. So the agent needs no right to
write anything, and its report is never older than a probe.
"""

from collections.abc import Collection, Iterable

from bridge.domain.model.pods import Pod
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode

SELECTOR = "app.kubernetes.io/name=slurm-bridge,app.kubernetes.io/component=agent"
"""Its pods, in the release's namespace."""
NO_MANAGER = "none"
"""Of `names.CPU_MANAGER_LABEL`: the kubelet leaves cpusets alone."""
_READY = "Ready"


def alive(pods: Iterable[Pod]) -> frozenset[KubeNode]:
    """Return the nodes of the agents that are ready and stay."""
    return frozenset(
        pod.kube_node
        for pod in pods
        if pod.kube_node is not None
        and not pod.is_deleting
        and (ready := pod.condition(_READY)) is not None
        and ready.status == "True"
    )


def wanted(kube_nodes: Iterable[KubeNodeFacts]) -> tuple[KubeNode, ...]:
    """Return the nodes on which the chart runs agents."""
    return tuple(node.name for node in kube_nodes if is_wanted(node))


def is_wanted(node: KubeNodeFacts) -> bool:
    """Check whether the chart runs an agent there: its nodeSelector."""
    is_external = nodes.is_wanted(node) and not nodes.is_hybrid(node)
    return is_external and node.labels.get(names.CPU_MANAGER_LABEL) == NO_MANAGER


def pins(node: KubeNodeFacts, agents: Collection[KubeNode]) -> bool:
    """Check whether pods that are placed there now get their own cores.

    agents: the nodes whose agent is alive (`alive`).
    """
    return node.name in agents and is_wanted(node)
