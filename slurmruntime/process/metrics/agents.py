"""Cores that the agent of a node has pinned."""

from slurmruntime.process.metrics.registry import Registry


class AgentMetrics:
    """Pods of one node and their cores."""

    def __init__(self, registry: Registry) -> None:
        self._pods = registry.gauge(
            "agent_pods",
            "Pods of the node by what the agent did with their cores: pinned, or why they may use all processors.",
            "cores",
        )
        self._failures = registry.counter(
            "agent_failures",
            "Failed attempts to read or write the processors of a pod; each is retried.",
        )

    def looked(self, pods: dict[str, int]) -> None:
        """Record how many pods have which cores."""
        self._pods.clear()
        for cores, count in pods.items():
            self._pods.labels(cores).set(count)

    def failed(self) -> None:
        """Record that a pod's processors could not be read or written."""
        self._failures.inc()
