"""What a program exports, as a scrape reads it."""

import math

from prometheus_client.parser import text_string_to_metric_families

from slurmruntime.process.metrics import Metrics


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """One sample of the exposition; NaN if it is not there."""
    for family in text_string_to_metric_families(metrics.registry.exposition().decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return math.nan
