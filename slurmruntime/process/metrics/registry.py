"""A process's registry: names, kinds and meanings in one form, for Prometheus and the reference."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST

CALL_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Buckets for requests: from a loopback response to the default time-out."""

WAIT_S = (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
"""Buckets for waits: from the fast path to a day in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One metric, for the reference."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    meaning: str
    labels: tuple[str, ...]


class Registry:
    """Where one process registers its metrics."""

    def __init__(self, program: str) -> None:
        self.descriptions: list[Description] = []
        disable_created_metrics()  # type: ignore[no-untyped-call]  # otherwise a second series for each
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        Info("slurm_bridge_build", "The program and its version.", registry=self._registry).info(
            {"program": program, "version": importlib.metadata.version("slurm-bridge")}
        )

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format (`CONTENT_TYPE`)."""
        return generate_latest(self._registry)

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """Register a counter; its name ends in `_total`."""
        self._describe(f"{name}_total", "counter", meaning, labels)
        return Counter(f"slurm_bridge_{name}", meaning, labels, registry=self._registry)

    def gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        """Register a gauge."""
        self._describe(name, "gauge", meaning, labels)
        return Gauge(f"slurm_bridge_{name}", meaning, labels, registry=self._registry)

    def histogram(
        self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        """Register a histogram."""
        self._describe(name, "histogram", meaning, labels)
        return Histogram(
            f"slurm_bridge_{name}", meaning, labels, buckets=buckets, registry=self._registry
        )

    def _describe(self, name: str, kind: str, meaning: str, labels: Sequence[str]) -> None:
        self.descriptions.append(
            Description(
                name=f"slurm_bridge_{name}", kind=kind, meaning=meaning, labels=tuple(labels)
            )
        )


def set_all(gauge: Gauge, counts: Mapping[str, int]) -> None:
    """Set a gauge's counts by label and drop all other labels."""
    gauge.clear()
    for label, count in counts.items():
        gauge.labels(label).set(count)
