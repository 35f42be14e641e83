"""Write the chart's Grafana dashboard, with our metrics and slurmctld's own: `python -m docs.generate.dashboard`.

slurmctld serves its figures with `MetricsType=metrics/openmetrics` in slurm.conf, below /metrics on its port.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[2] / "deploy/chart/files/dashboard.json"

_WIDTH = 24
"""Grafana's grid."""
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """One line of a panel."""

    legend: str
    expression: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph, or one number."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    """timeseries or stat."""
    width: int = 8
    height: int = 7


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, and what is below."""

    title: str
    panels: Sequence[Panel]


def _p(quantile: str, histogram: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({histogram}_bucket[$__rate_interval])))"


def _stat(title: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, [Query("", expression)], unit, kind="stat", width=4, height=4)


ROWS: Sequence[Row] = (
    Row(
        "Now",
        [
            _stat("Waiting workloads", "sum(max by (reason) (slurm_bridge_waiting_workloads))"),
            _stat("Running placeholders", 'max(slurm_bridge_placeholders{state="running"})'),
            _stat("Leaders (2)", "sum(slurm_bridge_leader)"),
            _stat("News of Slurm is old by", "max(slurm_bridge_snapshot_age_seconds)", "s"),
            _stat("Evictions held back", "max(slurm_bridge_evictions_held_back)"),
            _stat(
                "Slurm token ends in",
                "min(slurm_bridge_slurm_token_expiry_timestamp_seconds > 0) - time()",
                "s",
            ),
        ],
    ),
    Row(
        "Pods",
        [
            Panel(
                "Why workloads wait",
                [Query("{{reason}}", "max by (reason) (slurm_bridge_waiting_workloads)")],
            ),
            Panel("Pods by situation", [Query("{{row}}", "max by (row) (slurm_bridge_pods)")]),
            Panel(
                "Placeholders in Slurm",
                [Query("{{state}}", "max by (state) (slurm_bridge_placeholders)")],
            ),
            Panel(
                "CREATE to bound",
                [
                    Query("p50", _p("0.5", "slurm_bridge_pod_bound_seconds")),
                    Query("p99", _p("0.99", "slurm_bridge_pod_bound_seconds")),
                ],
                "s",
            ),
            Panel(
                "Steps, median",
                [
                    Query("submit", _p("0.5", "slurm_bridge_pod_submitted_seconds")),
                    Query("{{step}}", _p("0.5", "slurm_bridge_step_duration_seconds", "step")),
                ],
                "s",
            ),
            Panel(
                "Evictions and orphans",
                [
                    Query(
                        "{{cause}}",
                        "sum by (cause) (increase(slurm_bridge_evictions_total[$__rate_interval]))",
                    ),
                    Query(
                        "orphans",
                        "sum(increase(slurm_bridge_orphans_cancelled_total[$__rate_interval]))",
                    ),
                ],
            ),
        ],
    ),
    Row(
        "The programs",
        [
            Panel(
                "Requests to Slurm",
                [
                    Query(
                        "{{operation}} {{outcome}}",
                        "sum by (operation, outcome) (rate(slurm_bridge_slurm_requests_total[$__rate_interval]))",
                    )
                ],
                "reqps",
            ),
            Panel(
                "Slurm answers, p99",
                [
                    Query(
                        "{{operation}}",
                        _p("0.99", "slurm_bridge_slurm_request_duration_seconds", "operation"),
                    )
                ],
                "s",
            ),
            Panel(
                "Requests to the API server",
                [
                    Query(
                        "{{operation}} {{outcome}}",
                        "sum by (operation, outcome) (rate(slurm_bridge_kube_requests_total[$__rate_interval]))",
                    )
                ],
                "reqps",
            ),
            Panel(
                "Admission reviews",
                [
                    Query(
                        "{{verdict}}",
                        "sum by (verdict) (rate(slurm_bridge_admission_reviews_total[$__rate_interval]))",
                    )
                ],
                "reqps",
            ),
            Panel(
                "Calls of kube-scheduler",
                [
                    Query(
                        "{{verb}} {{outcome}}",
                        "sum by (verb, outcome) (rate(slurm_bridge_extender_calls_total[$__rate_interval]))",
                    )
                ],
                "reqps",
            ),
            Panel(
                "Keys that wait", [Query("{{queue}}", "sum by (queue) (slurm_bridge_queue_depth)")]
            ),
            Panel(
                "CPU",
                [
                    Query(
                        "{{program}}",
                        "sum by (program) (rate(process_cpu_seconds_total[$__rate_interval]) * on (instance)"
                        " group_left (program) slurm_bridge_build_info)",
                    )
                ],
            ),
            Panel(
                "Memory",
                [
                    Query(
                        "{{program}}",
                        "max by (program) (process_resident_memory_bytes * on (instance)"
                        " group_left (program) slurm_bridge_build_info)",
                    )
                ],
                "bytes",
            ),
        ],
    ),
    Row(
        "Slurm's own figures",
        [
            Panel(
                "Jobs",
                [
                    Query("pending", "slurm_jobs_pending"),
                    Query("running", "slurm_jobs_running"),
                    Query("held", "slurm_jobs_hold"),
                ],
            ),
            Panel(
                "CPUs",
                [
                    Query("allocated", "sum(slurm_node_cpus_alloc)"),
                    Query("all", "sum(slurm_node_cpus)"),
                ],
            ),
            Panel(
                "GPUs",
                [
                    Query("allocated", "sum(slurm_node_gpus_alloc)"),
                    Query("all", "sum(slurm_node_gpus)"),
                ],
            ),
        ],
    ),
)


def dashboard() -> dict[str, object]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "slurm-bridge",
        "title": "slurm-bridge",
        "tags": ["slurm", "kubernetes"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": _placed(),
    }


def _placed() -> list[dict[str, object]]:
    """The panels on Grafana's grid, row by row from left to right."""
    placed: list[dict[str, object]] = []
    y = 0
    for row in ROWS:
        placed.append(
            {
                "id": len(placed) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1},
            }
        )
        y, x, height = y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > _WIDTH:
                y, x = y + height, 0
            placed.append(_panel(len(placed) + 1, panel, x, y))
            x, height = x + panel.width, panel.height
        y += height
    return placed


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, object]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + n),
                "datasource": _DATASOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for n, query in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(dashboard(), indent=2) + "\n")
