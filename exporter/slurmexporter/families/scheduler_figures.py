"""The fields of slurmctld's statistics as metrics: tables of names and fields, and the chapter that shows one."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Final

from slurmclient.models import Statistics
from slurmexporter.families.chapter import Chapter, Limits
from slurmexporter.families.picture import Picture
from slurmexporter.text.family import Family, Metric, gauge

_US: Final = 1e-6

SLINKY: Final[Mapping[str, str]] = {
    "slurm_scheduler_cycle_depth_total": "schedule_cycle_depth",
    "slurm_scheduler_cycle_depth_mean_total": "schedule_cycle_mean_depth",
    "slurm_scheduler_cycle_last_seconds": "schedule_cycle_last",
    "slurm_scheduler_cycle_max_seconds": "schedule_cycle_max",
    "slurm_scheduler_cycle_mean_seconds": "schedule_cycle_mean",
    "slurm_scheduler_cycle_sum_seconds_total": "schedule_cycle_sum",
    "slurm_scheduler_cycle_perminute_total": "schedule_cycle_per_minute",
    "slurm_scheduler_cycle_total": "schedule_cycle_total",
    "slurm_scheduler_queue_total": "schedule_queue_length",
    "slurm_scheduler_defaultqueuedepth_total": "schedule_exit.default_queue_depth",
    "slurm_scheduler_endjobqueue_total": "schedule_exit.end_job_queue",
    "slurm_scheduler_licenses_total": "schedule_exit.licenses",
    "slurm_scheduler_maxjobstart_total": "schedule_exit.max_job_start",
    "slurm_scheduler_maxrpc_total": "schedule_exit.max_rpc_cnt",
    "slurm_scheduler_maxschedtime_total": "schedule_exit.max_sched_time",
    "slurm_scheduler_jobs_stats_timestamp": "job_states_ts",
    "slurm_scheduler_jobs_submitted_total": "jobs_submitted",
    "slurm_scheduler_jobs_started_total": "jobs_started",
    "slurm_scheduler_jobs_completed_total": "jobs_completed",
    "slurm_scheduler_jobs_canceled_total": "jobs_canceled",
    "slurm_scheduler_jobs_failed_total": "jobs_failed",
    "slurm_scheduler_jobs_pending_total": "jobs_pending",
    "slurm_scheduler_jobs_running_total": "jobs_running",
    "slurm_scheduler_agent_total": "agent_count",
    "slurm_scheduler_agent_queue_total": "agent_queue_size",
    "slurm_scheduler_agent_thread_total": "agent_thread_count",
    "slurm_scheduler_thread_total": "server_thread_count",
    "slurm_scheduler_dbdagentqueue_total": "dbd_agent_queue_size",
    "slurm_bfscheduler_active_bool": "bf_active",
    "slurm_bfscheduler_backfilledjobs_total": "bf_backfilled_jobs",
    "slurm_bfscheduler_backfilledhetjobs_total": "bf_backfilled_het_jobs",
    "slurm_bfscheduler_lastbackfilledjobs_total": "bf_last_backfilled_jobs",
    "slurm_bfscheduler_cycle_total": "bf_cycle_counter",
    "slurm_bfscheduler_cycle_seconds": "bf_cycle_last",
    "slurm_bfscheduler_cycle_max_seconds": "bf_cycle_max",
    "slurm_bfscheduler_cycle_mean_seconds": "bf_cycle_mean",
    "slurm_bfscheduler_cycle_sum_seconds": "bf_cycle_sum",
    "slurm_bfscheduler_lastcycle_timestamp": "bf_when_last_cycle",
    "slurm_bfscheduler_depth_mean_total": "bf_depth_mean",
    "slurm_bfscheduler_depth_try_total": "bf_depth_mean_try",
    "slurm_bfscheduler_depth_sum_total": "bf_depth_sum",
    "slurm_bfscheduler_depth_trysum_total": "bf_depth_try_sum",
    "slurm_bfscheduler_lastdepth_total": "bf_last_depth",
    "slurm_bfscheduler_lastdepthtry_total": "bf_last_depth_try",
    "slurm_bfscheduler_queue_total": "bf_queue_len",
    "slurm_bfscheduler_queue_mean_total": "bf_queue_len_mean",
    "slurm_bfscheduler_queue_sum_total": "bf_queue_len_sum",
    "slurm_bfscheduler_table_total": "bf_table_size",
    "slurm_bfscheduler_tablemean_total": "bf_table_size_mean",
    "slurm_bfscheduler_tablesum_total": "bf_table_size_sum",
    "slurm_bfscheduler_endjobqueue_total": "bf_exit.end_job_queue",
    "slurm_bfscheduler_maxjobstart_total": "bf_exit.bf_max_job_start",
    "slurm_bfscheduler_maxjobtest_total": "bf_exit.bf_max_job_test",
    "slurm_bfscheduler_maxtime_total": "bf_exit.bf_max_time",
    "slurm_bfscheduler_nodespace_total": "bf_exit.bf_node_space_size",
    "slurm_bfscheduler_statechanged_total": "bf_exit.state_changed",
}
"""slurm-exporter's names; `_seconds` are seconds here, but microseconds in slurm-exporter."""

NATIVE: Final[Mapping[str, str]] = {
    "slurm_agent_cnt": "agent_count",
    "slurm_agent_queue_size": "agent_queue_size",
    "slurm_agent_thread_cnt": "agent_thread_count",
    "slurm_backfilled_het_jobs": "bf_backfilled_het_jobs",
    "slurm_backfilled_jobs": "bf_backfilled_jobs",
    "slurm_bf_active": "bf_active",
    "slurm_bf_cycle_cnt": "bf_cycle_counter",
    "slurm_bf_cycle_last": "bf_cycle_last",
    "slurm_bf_cycle_max": "bf_cycle_max",
    "slurm_bf_cycle_tot": "bf_cycle_sum",
    "slurm_bf_depth_mean": "bf_depth_mean",
    "slurm_bf_depth_tot": "bf_depth_sum",
    "slurm_bf_depth_try_tot": "bf_depth_try_sum",
    "slurm_bf_exit_end": "bf_exit.end_job_queue",
    "slurm_bf_exit_max_job_start": "bf_exit.bf_max_job_start",
    "slurm_bf_exit_max_job_test": "bf_exit.bf_max_job_test",
    "slurm_bf_exit_state_changed": "bf_exit.state_changed",
    "slurm_bf_exit_table_limit": "bf_exit.bf_node_space_size",
    "slurm_bf_exit_timeout": "bf_exit.bf_max_time",
    "slurm_bf_last_depth": "bf_last_depth",
    "slurm_bf_last_depth_try": "bf_last_depth_try",
    "slurm_bf_mean_cycle": "bf_cycle_mean",
    "slurm_bf_mean_table_sz": "bf_table_size_mean",
    "slurm_bf_queue_len": "bf_queue_len",
    "slurm_bf_queue_len_mean": "bf_queue_len_mean",
    "slurm_bf_queue_len_tot": "bf_queue_len_sum",
    "slurm_bf_table_size": "bf_table_size",
    "slurm_bf_table_size_tot": "bf_table_size_sum",
    "slurm_bf_try_depth_mean": "bf_depth_mean_try",
    "slurm_bf_when_last_cycle": "bf_when_last_cycle",
    "slurm_last_backfilled_jobs": "bf_last_backfilled_jobs",
    "slurm_last_proc_req_start": "req_time_start",
    "slurm_sched_exit_end": "schedule_exit.end_job_queue",
    "slurm_sched_exit_lic": "schedule_exit.licenses",
    "slurm_sched_exit_max_depth": "schedule_exit.default_queue_depth",
    "slurm_sched_exit_max_job_start": "schedule_exit.max_job_start",
    "slurm_sched_exit_rpc_cnt": "schedule_exit.max_rpc_cnt",
    "slurm_sched_exit_timeout": "schedule_exit.max_sched_time",
    "slurm_sched_mean_cycle": "schedule_cycle_mean",
    "slurm_sched_mean_depth_cycle": "schedule_cycle_mean_depth",
    "slurm_sched_stats_timestamp": "req_time",
    "slurm_schedule_cycle_cnt": "schedule_cycle_total",
    "slurm_schedule_cycle_depth": "schedule_cycle_depth",
    "slurm_schedule_cycle_last": "schedule_cycle_last",
    "slurm_schedule_cycle_max": "schedule_cycle_max",
    "slurm_schedule_cycle_tot": "schedule_cycle_sum",
    "slurm_schedule_queue_len": "schedule_queue_length",
    "slurm_sdiag_job_states_ts": "job_states_ts",
    "slurm_sdiag_jobs_canceled": "jobs_canceled",
    "slurm_sdiag_jobs_completed": "jobs_completed",
    "slurm_sdiag_jobs_failed": "jobs_failed",
    "slurm_sdiag_jobs_pending": "jobs_pending",
    "slurm_sdiag_jobs_running": "jobs_running",
    "slurm_sdiag_jobs_started": "jobs_started",
    "slurm_sdiag_jobs_submitted": "jobs_submitted",
    "slurm_sdiag_latency": "gettimeofday_latency",
    "slurm_server_thread_cnt": "server_thread_count",
    "slurm_slurmdbd_queue_size": "dbd_agent_queue_size",
}
"""slurmctld's names; times are in microseconds, as in slurmctld, except for timestamps."""


def families(names: Mapping[str, str], source: str) -> Mapping[Family, str]:
    """Return the families of such a table, with their fields; source ends the help texts: "under slurmctld's name"."""
    return {
        gauge(name, f"{path} of slurmctld's statistics, {source}."): path
        for name, path in names.items()
    }


def chapter(figures: Mapping[Family, str]) -> Chapter:
    """Return the chapter of a page that shows these fields of slurmctld's statistics."""

    def write(picture: Picture, _: Limits) -> Iterable[Metric]:
        return metrics(figures, picture.scheduler or Statistics())

    return Chapter(name="scheduler", sources=("scheduler",), families=tuple(figures), write=write)


def metrics(figures: Mapping[Family, str], statistics: Statistics) -> Iterator[Metric]:
    """Yield these figures."""
    for family, path in figures.items():
        yield family, [((), _figure(family.name, attrgetter(path)(statistics)))]


def _figure(name: str, value: object) -> float:
    """Return a field as a number; one whose name ends in seconds is in seconds, and a time since 1970."""
    if isinstance(value, datetime):
        return value.timestamp()
    figure = float(value) if isinstance(value, int | float) else 0.0
    return figure * _US if name.endswith(("_seconds", "_seconds_total")) else figure
