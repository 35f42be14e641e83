"""Nodes of both systems."""

from collections.abc import Mapping

from slurmruntime.process.metrics.registry import Registry, set_all


class NodeMetrics:
    """Nodes, and the pods on them that Slurm did not place."""

    def __init__(self, registry: Registry) -> None:
        self._nodes = registry.gauge(
            "nodes",
            "Nodes wanted in Slurm, by the reason of their condition SlurmState.",
            "state",
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
