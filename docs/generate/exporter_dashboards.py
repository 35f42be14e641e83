"""Write slurm-exporter's Grafana dashboards into its chart: `python -m docs.generate.exporter_dashboards`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.generate import panels
from docs.generate.panels import Panel, Query, Row

FOLDER = Path(__file__).parents[2] / "deploy/exporter/chart/files"
_TAGS = ("slurm",)
_INTERVAL = "$__rate_interval"


def _one(title: str, expression: str, unit: str = "short", legend: str = "") -> Panel:
    return Panel(title, [Query(legend, expression)], unit)


def _stat(title: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, [Query("", expression)], unit, kind="stat", width=4, height=4)


def _rate(counter: str, by: str = "") -> str:
    return (
        f"sum by ({by}) (rate({counter}[{_INTERVAL}]))"
        if by
        else f"sum(rate({counter}[{_INTERVAL}]))"
    )


def _quantile(quantile: str, histogram: str, by: str) -> str:
    return (
        f"histogram_quantile({quantile}, sum by (le, {by}) (rate({histogram}_bucket[{_INTERVAL}])))"
    )


def _share(part: str, whole: str) -> str:
    return f"{part} / {whole}"


_CLUSTER = (
    Row(
        "Now",
        [
            _stat("slurmctld", 'slurm_up{source="slurmctld"}'),
            _stat("Nodes available", "slurm_nodes_available"),
            _stat("Nodes down", 'slurm_nodes_by_state{state="DOWN"}'),
            _stat("Running jobs", 'slurm_jobs_by_state{state="RUNNING"}'),
            _stat("Waiting jobs", 'slurm_jobs_by_state{state="PENDING"}'),
            _stat("CPUs in use", _share("sum(slurm_node_cpu_allocated)", "sum(slurm_node_cpu_size)"), "percentunit"),
        ],
    ),
    Row(
        "Jobs",
        [
            _one("Jobs by state", "slurm_jobs_by_state > 0", legend="{{state}}"),
            Panel(
                "Submitted, started, ended per second",
                [
                    Query("submitted", _rate("slurm_job_submits_total")),
                    Query("started", _rate("slurm_job_starts_total")),
                    Query("ended {{state}}", _rate("slurm_job_ends_total", "state")),
                ],
            ),
            _one("CPU-seconds per second", _rate("slurm_allocated_cpu_seconds_total"), legend="CPUs"),
        ],
    ),
    Row(
        "Nodes",
        [
            _one("Nodes by state", "slurm_nodes_by_state > 0", legend="{{state}}"),
            _one("Nodes by flag", "slurm_nodes_by_flag > 0", legend="{{flag}}"),
            _one("Memory in use", _share("sum(slurm_node_memory_allocated_bytes)", "sum(slurm_node_memory_size_bytes)"), "percentunit"),
        ],
    ),
    Row(
        "Shared",
        [
            _one("Licenses in use", "slurm_license_used", legend="{{license}}"),
            _one("Reserved nodes", "slurm_reservation_nodes", legend="{{reservation}}"),
            _one("Why nodes are away", "slurm_node_reason_info", legend="{{node}}: {{reason}}"),
        ],
    ),
)  # fmt: skip
_PARTITIONS = (
    Row(
        "Use",
        [
            _one("CPUs in use", 'slurm_partition_allocated{resource="cpus"} / slurm_partition_capacity{resource="cpus"}', "percentunit", "{{partition}}"),
            _one("CPUs asked for", "slurm_requested_cpus", legend="{{partition}}"),
            _one("Nodes available", "slurm_partition_nodes_available", legend="{{partition}}"),
        ],
    ),
    Row(
        "Queue",
        [
            _one("Waiting jobs", 'slurm_partition_jobs_by_state{state="PENDING"}', legend="{{partition}}"),
            _one("Why they wait", "sum by (reason) (slurm_pending_jobs)", legend="{{reason}}"),
            _one("The longest wait", "slurm_oldest_pending_seconds", "s", "{{partition}}"),
            _one("Wait, p50", _quantile("0.5", "slurm_job_wait_seconds", "partition"), "s", "{{partition}}"),
            _one("Wait, p90", _quantile("0.9", "slurm_job_wait_seconds", "partition"), "s", "{{partition}}"),
            _one("Run, p50", _quantile("0.5", "slurm_job_run_seconds", "partition"), "s", "{{partition}}"),
            _one("Time limit used, p50", _quantile("0.5", "slurm_job_timelimit_used_ratio", "partition"), "percentunit", "{{partition}}"),
            _one("Up", "slurm_partition_up", legend="{{partition}}"),
        ],
    ),
)  # fmt: skip
_PEOPLE = (
    Row(
        "Accounts",
        [
            _one("CPUs", "slurm_account_allocated_cpus", legend="{{account}}"),
            _one("CPU-seconds per second", _rate("slurm_allocated_cpu_seconds_total", "account"), legend="{{account}}"),
            _one("Waiting jobs", 'slurm_account_jobs_by_state{state="PENDING"}', legend="{{account}}"),
            _one("Fair-share", 'slurm_share_fairshare_factor{user=""}', legend="{{account}}"),
            _one("Effective usage", 'slurm_share_usage_effective{user=""}', legend="{{account}}"),
            _one("Jobs towards limits", 'slurm_assoc_usage{limit="GrpJobs",user=""}', legend="{{account}}"),
        ],
    ),
    Row(
        "Users",
        [
            _one("CPUs", "topk(20, slurm_user_allocated_cpus)", legend="{{user}}"),
            _one("Running jobs", 'topk(20, slurm_user_jobs_by_state{state="RUNNING"})', legend="{{user}}"),
            _one("Waiting jobs", 'topk(20, slurm_user_jobs_by_state{state="PENDING"})', legend="{{user}}"),
            _one("RPCs per second", f"topk(20, {_rate('slurm_user_rpcs_total', 'user')})", legend="{{user}}"),
            _one("Jobs by QOS", "sum by (qos) (slurm_qos_jobs_by_state)", legend="{{qos}}"),
            _one("CPUs by QOS", 'slurm_qos_usage{limit="GrpTRES",tres="cpu"}', legend="{{qos}}"),
        ],
    ),
)  # fmt: skip
_GPUS = (
    Row(
        "GPUs",
        [
            _stat("GPUs", 'sum(slurm_gres{gres="gpu"})'),
            _stat("In use", 'sum(slurm_gres_allocated{gres="gpu"})'),
            _stat("Share in use", 'sum(slurm_gres_allocated{gres="gpu"}) / sum(slurm_gres{gres="gpu"})', "percentunit"),
            _stat("Asked for", "sum(slurm_requested_gpus)"),
        ],
    ),
    Row(
        "Who and where",
        [
            _one("In use by type", 'slurm_gres_allocated{gres="gpu"}', legend="{{type}}"),
            _one("By account", "slurm_account_allocated_gpus", legend="{{account}}"),
            _one("By user", "topk(20, slurm_user_allocated_gpus)", legend="{{user}}"),
            _one("By partition", "slurm_allocated_gpus", legend="{{partition}}"),
            _one("By node", 'slurm_node_gres_allocated{gres="gpu"}', legend="{{node}}"),
            _one("GPU-seconds per second", _rate("slurm_allocated_gpu_seconds_total", "account"), legend="{{account}}"),
        ],
    ),
)  # fmt: skip
_SCHEDULER = (
    Row(
        "Scheduling",
        [
            Panel(
                "Cycles per second",
                [
                    Query("main", "rate(slurm_sched_cycles_total[$__rate_interval])"),
                    Query("backfill", "rate(slurm_backfill_cycles_total[$__rate_interval])"),
                ],
            ),
            Panel(
                "Last cycle",
                [
                    Query("main", "slurm_sched_last_cycle_duration_seconds"),
                    Query("backfill", "slurm_backfill_last_cycle_duration_seconds"),
                ],
                "s",
            ),
            Panel(
                "Queue",
                [
                    Query("main", "slurm_sched_queue_length"),
                    Query("backfill", "slurm_backfill_queue_length"),
                ],
            ),
            _one("Why main cycles end", _rate("slurm_sched_exits_total", "reason"), legend="{{reason}}"),
            _one("Why backfill cycles end", _rate("slurm_backfill_exits_total", "reason"), legend="{{reason}}"),
            _one("Started by backfill", "increase(slurm_backfill_jobs_started_total[1h])"),
        ],
    ),
    Row(
        "slurmctld and slurmdbd",
        [
            _one("RPCs per second", f"topk(10, {_rate('slurm_rpcs_total', 'type')})", legend="{{type}}"),
            _one("Time on RPCs", f"topk(10, {_rate('slurm_rpc_seconds_total', 'type')})", "percentunit", "{{type}}"),
            _one("Threads", "slurm_ctld_threads"),
            Panel(
                "Queues",
                [
                    Query("to nodes", "slurm_ctld_agent_queue"),
                    Query("to slurmdbd", "slurm_ctld_dbd_queue"),
                ],
            ),
            _one("slurmctld answers in", "slurm_controller_ping_seconds", "s", "{{host}}"),
            _one("RPCs of slurmdbd", f"topk(10, {_rate('slurm_dbd_rpcs_total', 'type')})", legend="{{type}}"),
        ],
    ),
)  # fmt: skip
_SELF = (
    Row(
        "slurm-exporter",
        [
            _one("Up", "slurm_up", legend="{{source}}"),
            _one("Age of data", "slurm_exporter_data_age_seconds", "s", "{{source}}"),
            _one("Readings per second", _rate("slurm_exporter_collects_total", "source, outcome"), legend="{{source}} {{outcome}}"),
            _one("Time of a reading", "rate(slurm_exporter_collect_seconds_total[$__rate_interval]) / on (source) sum by (source) (rate(slurm_exporter_collects_total[$__rate_interval]))", "s", "{{source}}"),
            _one("Requests per second", _rate("slurm_exporter_requests_total", "operation, outcome"), "reqps", "{{operation}} {{outcome}}"),
            _one("Times less often", "slurm_exporter_pace"),
            _one("Series", "slurm_exporter_series", legend="{{names}} {{chapter}}"),
            _one("Series left out", "slurm_exporter_series_dropped", legend="{{names}} {{chapter}}"),
            _one("Scrapes per second", "rate(slurm_exporter_scrapes_total[$__rate_interval])"),
            _one("CPU", "rate(process_cpu_seconds_total[$__rate_interval]) * on (instance) slurm_exporter_build_info", "percentunit"),
            _one("Memory", "process_resident_memory_bytes * on (instance) slurm_exporter_build_info", "bytes"),
            _one("The oldest reason", "slurm_pending_reason_age_seconds", "s"),
        ],
    ),
)  # fmt: skip
_JOB = (
    Row(
        "One job; without data, slurm-exporter runs without --job-info",
        [
            Panel("Job", [Query("{{name}} of {{user}}, {{account}}, {{partition}}: {{state}}", 'slurm_job_info{job_id="$job"}')], width=24, height=4, kind="stat"),
            _one("CPUs", 'slurm_job_cpus{job_id="$job"}'),
            _one("GPUs", 'slurm_job_gpus{job_id="$job"}'),
            _one("Memory", 'slurm_job_memory_bytes{job_id="$job"}', "bytes"),
            _one("Runs for", 'time() - slurm_job_start_timestamp_seconds{job_id="$job"}', "s"),
            _one("Time left", 'slurm_job_end_limit_timestamp_seconds{job_id="$job"} - time()', "s"),
        ],
    ),
)  # fmt: skip
_JOB_VARIABLE = {
    "name": "job",
    "label": "Job",
    "type": "query",
    "datasource": {"type": "prometheus", "uid": "${datasource}"},
    "query": "label_values(slurm_job_info, job_id)",
    "refresh": 2,
}
DASHBOARDS: Mapping[str, tuple[str, Sequence[Row], Sequence[object]]] = {
    "cluster": ("Slurm: cluster", _CLUSTER, ()),
    "partitions": ("Slurm: partitions", _PARTITIONS, ()),
    "people": ("Slurm: accounts and users", _PEOPLE, ()),
    "gpus": ("Slurm: GPUs", _GPUS, ()),
    "scheduler": ("Slurm: scheduler", _SCHEDULER, ()),
    "exporter": ("Slurm: slurm-exporter", _SELF, ()),
    "job": ("Slurm: one job", _JOB, (_JOB_VARIABLE,)),
}
"""Title, rows and variables, by the name of the file."""


def made() -> Mapping[Path, str]:
    """Return all dashboards by their files."""
    return {
        FOLDER / f"{name}.json": json.dumps(
            panels.dashboard(title, f"slurm-exporter-{name}", _TAGS, rows, variables), indent=2
        )
        + "\n"
        for name, (title, rows, variables) in DASHBOARDS.items()
    }


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
