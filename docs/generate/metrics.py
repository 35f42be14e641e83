"""Write `docs/metrics.md` from the metrics themselves: `python -m docs.generate.metrics > docs/metrics.md`."""

import sys

from slurmruntime.process.metrics import Metrics

_INTRODUCTION = """\
# Metrics

<!-- Generated: python -m docs.generate.metrics > docs/metrics.md -->

Every program serves `/metrics` in Prometheus' text format, next to `/livez` and `/readyz` (setting `health.listen`).
Metrics that do not concern a program have no values there. `process_…` (CPU seconds, resident memory, open files) has the
usual meaning. Slurm's own figures about jobs, nodes and partitions come from slurmctld
(`MetricsType=metrics/openmetrics` in slurm.conf, port 6817); the chart's dashboard shows both.

| metric | kind | labels | meaning |
| --- | --- | --- | --- |
"""


def render() -> str:
    """Return the page."""
    rows = sorted(Metrics("reference").registry.descriptions, key=lambda metric: metric.name)
    return _INTRODUCTION + "".join(
        f"| `{row.name}` | {row.kind} | {', '.join(f'`{label}`' for label in row.labels)} | {row.meaning} |\n"
        for row in rows
    )


if __name__ == "__main__":
    sys.stdout.write(render())
