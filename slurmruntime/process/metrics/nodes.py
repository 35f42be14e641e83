"""Nodes of both systems."""

from collections.abc import Mapping

from slurmruntime.process.metrics.registry import Registry, set_all


class NodeMetrics:
    """Nodes, and the pods on them that Slurm did not place."""

    def __init__(self, registry: Registry) -> None:
        self._nodes = registry.gauge(
            "nodes", "Nodes wanted in Slurm, by the reason of their condition SlurmState.", "state"
        )
        self._other_pods = registry.gauge(
            "other_pods",
            "Pods on Slurm's nodes that Slurm did not place, by namespace (the 50 with the most).",
            "namespace",
        )

    def count(self, by_state: Mapping[str, int]) -> None:
        """Record the nodes by state, after a reading of Slurm's nodes."""
        set_all(self._nodes, by_state)

    def other_pods(self, by_namespace: Mapping[str, int]) -> None:
        """Record the pods that Slurm did not place on its nodes."""
        set_all(self._other_pods, by_namespace)


class AgentMetrics:
    """Pods of one node and their cores."""

    def __init__(self, registry: Registry) -> None:
        self._pods = registry.gauge(
            "agent_pods",
            "Pods of the node by what the agent did with their cores: pinned, or why they may use all processors.",
            "cores",
        )
        self.failed = registry.counter(
            "agent_failures",
            "Failed attempts to read or write the processors of a pod; each is retried.",
        ).inc

    def looked(self, pods: dict[str, int]) -> None:
        """Record how many pods have which cores."""
        set_all(self._pods, pods)
