"""Pods of Slurm: decisions, steps and evictions."""

from collections.abc import Mapping

from slurmruntime.process.metrics.registry import WAIT_S, Registry, set_all


class PodMetrics:
    """Pods by situation, durations of their steps, and evictions."""

    def __init__(self, registry: Registry) -> None:
        self._decisions = registry.counter("decisions", "Actions decided on.", "action")
        self._pods = registry.gauge(
            "pods", "Pods handled by this leader, by their row of docs/lifecycle.md.", "row"
        )
        self.submitted = registry.histogram(
            "pod_submitted_seconds", "From a pod's CREATE to its placeholder's submit.", WAIT_S
        ).observe
        self.bound = registry.histogram(
            "pod_bound_seconds", "From a pod's CREATE to its Binding.", WAIT_S
        ).observe
        self._step_s = registry.histogram(
            "step_duration_seconds",
            "Steps of a pod's life: queue (submit to start in Slurm), pin (start to un-gated), "
            "room (the part of pin that terminating pods took, from two seconds on), "
            "complete (last container's end to the report to Slurm).",
            WAIT_S,
            "step",
        )
        self._evictions = registry.counter(
            "evictions", "Pods evicted before they had ended, by cause.", "cause"
        )
        self.evictions_held_back = registry.gauge(
            "evictions_held_back",
            "Evictions that the circuit breaker holds back; 0 while it is closed.",
        ).set
        self.without_job = registry.gauge(
            "pods_without_job",
            "Running pods whose placeholder Slurm has lost, or ended with their node.",
        ).set

    def decided(self, action: str) -> None:
        """Record an action the lifecycle has decided on."""
        self._decisions.labels(action).inc()

    def moved(self, before: str | None, now: str | None) -> None:
        """Record that a pod changed its row of the lifecycle; None: it is new, or gone."""
        if before is not None:
            self._pods.labels(before).dec()
        if now is not None:
            self._pods.labels(now).inc()

    def stepped(self, step: str, seconds: float) -> None:
        """Record the duration of a step of a pod's life."""
        self._step_s.labels(step).observe(seconds)

    def evicted(self, cause: str) -> None:
        """Record that a pod was evicted, or ended at its gate."""
        self._evictions.labels(cause).inc()


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
        self.orphan_cancelled = registry.counter(
            "orphans_cancelled", "Placeholders cancelled because their pods no longer existed."
        ).inc
        self.orphans_held_back = registry.gauge(
            "orphans_held_back",
            "Placeholders without pods that are not cancelled without an operator's consent.",
        ).set

    def count(self, by_state: Mapping[str, int]) -> None:
        """Replace the counts of our placeholders."""
        set_all(self._placeholders, by_state)

    def waiting(self, by_reason: Mapping[str, int]) -> None:
        """Replace the counts of workloads that wait in Slurm."""
        set_all(self._waiting, by_reason)
