"""Our requests to both systems, and their responses."""

import math
from collections.abc import Callable
from datetime import datetime

from slurmruntime.process.metrics.registry import CALL_S, Registry


class SlurmMetrics:
    """Calls of Slurm, and the age of what we know of it."""

    def __init__(self, registry: Registry) -> None:
        self._slurm_requests = registry.counter(
            "slurm_requests", "Requests to slurmrestd and slurmctld.", "operation", "outcome"
        )
        self._slurm_request_s = registry.histogram(
            "slurm_request_duration_seconds", "Time until Slurm answered.", CALL_S, "operation"
        )
        self.watch_snapshot_age = registry.gauge(
            "snapshot_age_seconds", "Age of the newest complete snapshot of Slurm's jobs."
        ).set_function
        self.watch_clock = registry.gauge(
            "clock_skew_seconds",
            "slurmctld's clock minus this machine's, beyond what the response time explains.",
        ).set_function
        self._token_expires_s = registry.gauge(
            "slurm_token_expiry_timestamp_seconds",
            "When the Slurm token expires, Unix time; +Inf if it does not say.",
        )

    def call(self, operation: str, seconds: float, outcome: str) -> None:
        """Record a finished request to Slurm; the `on_call` hook of `bridge.slurm`."""
        self._slurm_requests.labels(operation, outcome).inc()
        self._slurm_request_s.labels(operation).observe(seconds)

    def watch_token(self, expires_at: Callable[[], datetime | None]) -> None:
        """Call `expires_at` for the expiry of the Slurm token at every scrape."""
        self._token_expires_s.set_function(
            lambda: ends_at.timestamp() if (ends_at := expires_at()) else math.inf
        )


class KubeMetrics:
    """Calls of the API server."""

    def __init__(self, registry: Registry) -> None:
        self._kube_requests = registry.counter(
            "kube_requests", "Requests to the API server.", "operation", "outcome"
        )
        self._kube_request_s = registry.histogram(
            "kube_request_duration_seconds",
            "Time until the API server answered.",
            CALL_S,
            "operation",
        )

    def call(self, operation: str, seconds: float, outcome: str) -> None:
        """Record a finished request to the API server; the `on_call` hook of `bridge.kube`."""
        self._kube_requests.labels(operation, outcome).inc()
        self._kube_request_s.labels(operation).observe(seconds)
