"""Which figure of sdiag is which family, by the words that sdiag prints; `json/` for sums that its text leaves out."""

from typing import Final

US: Final = 1e-6

NAMES: Final = (
    # what sdiag calls it, slurm-exporter, slurmctld, vpenso, own
    ("/Server thread count", "scheduler_thread_total", "server_thread_cnt", "threads", "ctld_threads"),
    ("/Agent queue size", "scheduler_agent_queue_total", "agent_queue_size", "queue_size", "ctld_agent_queue"),
    ("/Agent count", "scheduler_agent_total", "agent_cnt", "", "ctld_agents"),
    ("/Agent thread count", "scheduler_agent_thread_total", "agent_thread_cnt", "", "ctld_agent_threads"),
    ("/DBD Agent queue size", "scheduler_dbdagentqueue_total", "slurmdbd_queue_size", "dbd_queue_size", "ctld_dbd_queue"),
    ("/Jobs submitted", "scheduler_jobs_submitted_total", "sdiag_jobs_submitted", "", "ctld_jobs_submitted_total"),
    ("/Jobs started", "scheduler_jobs_started_total", "sdiag_jobs_started", "", "ctld_jobs_started_total"),
    ("/Jobs completed", "scheduler_jobs_completed_total", "sdiag_jobs_completed", "", "ctld_jobs_completed_total"),
    ("/Jobs canceled", "scheduler_jobs_canceled_total", "sdiag_jobs_canceled", "", "ctld_jobs_canceled_total"),
    ("/Jobs failed", "scheduler_jobs_failed_total", "sdiag_jobs_failed", "", "ctld_jobs_failed_total"),
    ("/Job states ts", "scheduler_jobs_stats_timestamp", "sdiag_job_states_ts", "", ""),
    ("/Jobs pending", "scheduler_jobs_pending_total", "sdiag_jobs_pending", "", ""),
    ("/Jobs running", "scheduler_jobs_running_total", "sdiag_jobs_running", "", ""),
    ("/sdiag output at", "", "sched_stats_timestamp", "", ""),
    ("/Data since", "", "last_proc_req_start", "", "ctld_statistics_start_timestamp_seconds"),
    ("main/Last cycle", "scheduler_cycle_last_seconds", "schedule_cycle_last", "last_cycle", "sched_last_cycle_duration_seconds"),
    ("main/Max cycle", "scheduler_cycle_max_seconds", "schedule_cycle_max", "", "sched_longest_cycle_duration_seconds"),
    ("main/Total cycles", "scheduler_cycle_total", "schedule_cycle_cnt", "", "sched_cycles_total"),
    ("main/Mean cycle", "scheduler_cycle_mean_seconds", "sched_mean_cycle", "mean_cycle", ""),
    ("main/Mean depth cycle", "scheduler_cycle_depth_mean_total", "sched_mean_depth_cycle", "", ""),
    ("json/schedule_cycle_per_minute", "scheduler_cycle_perminute_total", "", "cycle_per_minute", ""),
    ("main/Last queue length", "scheduler_queue_total", "schedule_queue_len", "", "sched_queue_length"),
    ("json/schedule_cycle_sum", "scheduler_cycle_sum_seconds_total", "schedule_cycle_tot", "", "sched_cycle_seconds_total"),
    ("json/schedule_cycle_depth", "scheduler_cycle_depth_total", "schedule_cycle_depth", "", "sched_depth_total"),
    ("main exit/End of job queue", "scheduler_endjobqueue_total", "sched_exit_end", "", "sched_exits_total:end_job_queue"),
    ("main exit/Hit default_queue_depth", "scheduler_defaultqueuedepth_total", "sched_exit_max_depth", "", "sched_exits_total:default_queue_depth"),
    ("main exit/Hit sched_max_job_start", "scheduler_maxjobstart_total", "sched_exit_max_job_start", "", "sched_exits_total:max_job_start"),
    ("main exit/Blocked on licenses", "scheduler_licenses_total", "sched_exit_lic", "", "sched_exits_total:licenses"),
    ("main exit/Hit max_rpc_cnt", "scheduler_maxrpc_total", "sched_exit_rpc_cnt", "", "sched_exits_total:max_rpc_cnt"),
    ("main exit/Timeout (max_sched_time)", "scheduler_maxschedtime_total", "sched_exit_timeout", "", "sched_exits_total:max_sched_time"),
    ("backfill/Total backfilled jobs (since last slurm start)", "bfscheduler_backfilledjobs_total", "backfilled_jobs", "backfilled_jobs_since_start_total", "backfill_jobs_started_total"),
    ("backfill/Total backfilled jobs (since last stats cycle start)", "bfscheduler_lastbackfilledjobs_total", "last_backfilled_jobs", "backfilled_jobs_since_cycle_total", ""),
    ("backfill/Total backfilled heterogeneous job components", "bfscheduler_backfilledhetjobs_total", "backfilled_het_jobs", "backfilled_heterogeneous_total", "backfill_het_components_started_total"),
    ("backfill/Total cycles", "bfscheduler_cycle_total", "bf_cycle_cnt", "", "backfill_cycles_total"),
    ("backfill/Last cycle when", "bfscheduler_lastcycle_timestamp", "bf_when_last_cycle", "", "backfill_last_cycle_timestamp_seconds"),
    ("backfill/Last cycle", "bfscheduler_cycle_seconds", "bf_cycle_last", "backfill_last_cycle", "backfill_last_cycle_duration_seconds"),
    ("backfill/Max cycle", "bfscheduler_cycle_max_seconds", "bf_cycle_max", "", "backfill_longest_cycle_duration_seconds"),
    ("backfill/Mean cycle", "bfscheduler_cycle_mean_seconds", "bf_mean_cycle", "backfill_mean_cycle", ""),
    ("backfill/Last depth cycle", "bfscheduler_lastdepth_total", "bf_last_depth", "", ""),
    ("backfill/Last depth cycle (try sched)", "bfscheduler_lastdepthtry_total", "bf_last_depth_try", "", ""),
    ("backfill/Depth Mean", "bfscheduler_depth_mean_total", "bf_depth_mean", "backfill_depth_mean", ""),
    ("backfill/Depth Mean (try depth)", "bfscheduler_depth_try_total", "bf_try_depth_mean", "", ""),
    ("backfill/Last queue length", "bfscheduler_queue_total", "bf_queue_len", "", "backfill_queue_length"),
    ("backfill/Queue length mean", "bfscheduler_queue_mean_total", "bf_queue_len_mean", "", ""),
    ("backfill/Last table size", "bfscheduler_table_total", "bf_table_size", "", ""),
    ("backfill/Mean table size", "bfscheduler_tablemean_total", "bf_mean_table_sz", "", ""),
    ("json/bf_active", "bfscheduler_active_bool", "bf_active", "", "backfill_running"),
    ("json/bf_cycle_sum", "bfscheduler_cycle_sum_seconds", "bf_cycle_tot", "", "backfill_cycle_seconds_total"),
    ("json/bf_depth_sum", "bfscheduler_depth_sum_total", "bf_depth_tot", "", "backfill_depth_total"),
    ("json/bf_depth_try_sum", "bfscheduler_depth_trysum_total", "bf_depth_try_tot", "", "backfill_depth_tried_total"),
    ("json/bf_queue_len_sum", "bfscheduler_queue_sum_total", "bf_queue_len_tot", "", ""),
    ("json/bf_table_size_sum", "bfscheduler_tablesum_total", "bf_table_size_tot", "", ""),
    ("backfill exit/End of job queue", "bfscheduler_endjobqueue_total", "bf_exit_end", "", "backfill_exits_total:end_job_queue"),
    ("backfill exit/Hit bf_max_job_start", "bfscheduler_maxjobstart_total", "bf_exit_max_job_start", "", "backfill_exits_total:bf_max_job_start"),
    ("backfill exit/Hit bf_max_job_test", "bfscheduler_maxjobtest_total", "bf_exit_max_job_test", "", "backfill_exits_total:bf_max_job_test"),
    ("backfill exit/System state changed", "bfscheduler_statechanged_total", "bf_exit_state_changed", "", "backfill_exits_total:state_changed"),
    ("backfill exit/Hit table size limit (bf_node_space_size)", "bfscheduler_nodespace_total", "bf_exit_table_limit", "", "backfill_exits_total:bf_node_space_size"),
    ("backfill exit/Timeout (bf_max_time)", "bfscheduler_maxtime_total", "bf_exit_timeout", "", "backfill_exits_total:bf_max_time"),
    ("backfill exit/Latency for 1000 calls to gettimeofday()", "", "sdiag_latency", "", ""),
)  # fmt: skip


def series(names: str) -> dict[str, dict[str, str]]:
    """The families of a name set: by family, what sdiag calls it by the label `reason` ("" without)."""
    column = {"slinky": 1, "native": 2, "vpenso": 3, "own": 4}[names]
    found: dict[str, dict[str, str]] = {}
    for row in NAMES:
        if row[column]:
            name, _, reason = row[column].partition(":")
            prefix = "slurm_scheduler_" if names == "vpenso" else "slurm_"
            found.setdefault(prefix + name, {})[reason] = row[0]
    return found


def unit(names: str, family: str, words: str) -> float:
    """What a figure of sdiag is multiplied by: durations are in microseconds there."""
    is_duration = words in DURATIONS and names in {"slinky", "own"}
    return US if is_duration and family.endswith(("_seconds", "_seconds_total")) else 1


DURATIONS: Final = frozenset(
    {
        "main/Last cycle", "main/Max cycle", "main/Mean cycle", "json/schedule_cycle_sum",
        "backfill/Last cycle", "backfill/Max cycle", "backfill/Mean cycle", "json/bf_cycle_sum",
    }
)  # fmt: skip
