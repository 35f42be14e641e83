"""Every metric slurm-bridge exports."""

from bridge.process.metrics.registry import CONTENT_TYPE, Metrics

__all__ = ["CONTENT_TYPE", "Metrics"]
