"""Placeholders in Slurm."""

from collections.abc import Mapping

from slurmruntime.process.metrics.registry import Registry, set_all


class PlaceholderMetrics:
    """Placeholders, and those without pods."""

    def __init__(self, registry: Registry) -> None:
        self._placeholders = registry.gauge(
            "placeholders", "Our placeholders in Slurm, by state.", "state"
        )
        self._waiting = registry.gauge(
            "waiting_workloads",
            "Workloads waiting in Slurm, by Slurm's reason as last read.",
            "reason",
        )
        self._orphans = registry.counter(
            "orphans_cancelled", "Placeholders cancelled because their pods no longer existed."
        )
        self._orphans_held_back = registry.gauge(
            "orphans_held_back",
            "Placeholders without pods that are not cancelled without an operator's consent.",
        )

    def count(self, by_state: Mapping[str, int]) -> None:
        """Replace the counts of our placeholders."""
        set_all(self._placeholders, by_state)

    def waiting(self, by_reason: Mapping[str, int]) -> None:
        """Replace the counts of workloads that wait in Slurm."""
        set_all(self._waiting, by_reason)

    def orphan_cancelled(self) -> None:
        """Record that a placeholder without pods was cancelled."""
        self._orphans.inc()

    def orphans_held_back(self, placeholders: int) -> None:
        """Record how many placeholders without pods are kept."""
        self._orphans_held_back.set(placeholders)
