"""Write the chart's Grafana dashboard, with our metrics and slurmctld's own: `python -m docs.generate.dashboard`.

slurmctld serves its figures with `MetricsType=metrics/openmetrics` in slurm.conf, below /metrics on its port.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from docs.generate import panels
from docs.generate.panels import Panel, Query, Row

FILE = Path(__file__).parents[2] / "deploy/chart/files/dashboard.json"


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
                "Longest standstill of an event loop",
                [
                    Query(
                        "{{program}} {{loop}}",
                        "max by (program, loop) (slurm_bridge_loop_longest_standstill_seconds * on (instance)"
                        " group_left (program) slurm_bridge_build_info)",
                    )
                ],
                "s",
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


if __name__ == "__main__":
    made = panels.dashboard("slurm-bridge", "slurm-bridge", ["slurm", "kubernetes"], ROWS)
    FILE.write_text(json.dumps(made, indent=2) + "\n")
