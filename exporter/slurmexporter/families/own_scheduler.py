"""Own names: the scheduler, RPCs, and which daemons respond.

slurmctld resets its statistics to 0 at midnight UTC, at a restart and on `sdiag --reset`. Counters
follow; Prometheus' `rate()` and `increase()` allow for that.
"""

from collections.abc import Iterable
from typing import Final

from slurmclient.models import Statistics
from slurmexporter.families import scheduler_figures
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.picture import Picture
from slurmexporter.text.budget import OTHER, largest
from slurmexporter.text.family import Metric, counter, gauge

_US: Final = 1e-6
"""slurmctld's statistics are in microseconds."""

TABLE: Final = {
    counter("slurm_sched_cycles_total", "Cycles of the main scheduler."): "schedule_cycle_total",
    counter("slurm_sched_cycle_seconds_total", "Time spent in cycles of the main scheduler."): "schedule_cycle_sum",
    counter("slurm_sched_depth_total", "Jobs considered by the main scheduler."): "schedule_cycle_depth",
    gauge("slurm_sched_last_cycle_duration_seconds", "Duration of the main scheduler's last cycle."): "schedule_cycle_last",
    gauge("slurm_sched_longest_cycle_duration_seconds", "Duration of the main scheduler's longest cycle."): "schedule_cycle_max",
    gauge("slurm_sched_queue_length", "Jobs in the main scheduler's queue."): "schedule_queue_length",
    counter("slurm_backfill_cycles_total", "Cycles of the backfill scheduler."): "bf_cycle_counter",
    counter("slurm_backfill_cycle_seconds_total", "Time spent in cycles of the backfill scheduler."): "bf_cycle_sum",
    counter("slurm_backfill_depth_total", "Jobs considered by the backfill scheduler."): "bf_depth_sum",
    counter("slurm_backfill_depth_tried_total", "Jobs that the backfill scheduler tried to start."): "bf_depth_try_sum",
    gauge("slurm_backfill_last_cycle_duration_seconds", "Duration of the backfill scheduler's last cycle."): "bf_cycle_last",
    gauge("slurm_backfill_longest_cycle_duration_seconds", "Duration of the backfill scheduler's longest cycle."): "bf_cycle_max",
    gauge("slurm_backfill_last_cycle_timestamp_seconds", "When the backfill scheduler last ran."): "bf_when_last_cycle",
    gauge("slurm_backfill_running", "1 while the backfill scheduler runs, else 0."): "bf_active",
    gauge("slurm_backfill_queue_length", "Jobs in the backfill scheduler's queue."): "bf_queue_len",
    counter("slurm_backfill_jobs_started_total", "Jobs started by the backfill scheduler since slurmctld started."): "bf_backfilled_jobs",
    counter("slurm_backfill_het_components_started_total", "Components of heterogeneous jobs started by the backfill scheduler."): "bf_backfilled_het_jobs",
    counter("slurm_ctld_jobs_submitted_total", "Jobs submitted, by slurmctld's own count."): "jobs_submitted",
    counter("slurm_ctld_jobs_started_total", "Jobs started, by slurmctld's own count."): "jobs_started",
    counter("slurm_ctld_jobs_completed_total", "Jobs completed, by slurmctld's own count."): "jobs_completed",
    counter("slurm_ctld_jobs_canceled_total", "Jobs cancelled, by slurmctld's own count."): "jobs_canceled",
    counter("slurm_ctld_jobs_failed_total", "Jobs failed, by slurmctld's own count."): "jobs_failed",
    gauge("slurm_ctld_threads", "slurmctld threads serving RPCs; at most 256."): "server_thread_count",
    gauge("slurm_ctld_agents", "slurmctld agents sending RPCs."): "agent_count",
    gauge("slurm_ctld_agent_threads", "Threads of slurmctld's agents."): "agent_thread_count",
    gauge("slurm_ctld_agent_queue", "RPCs waiting to be sent by slurmctld."): "agent_queue_size",
    gauge("slurm_ctld_dbd_queue", "Messages waiting to be sent to slurmdbd."): "dbd_agent_queue_size",
    gauge("slurm_ctld_statistics_start_timestamp_seconds", "When slurmctld's counters began: at its start, at midnight UTC or at a reset."): "req_time_start",
}  # fmt: skip
"""Families that show one figure of slurmctld's statistics, and their fields."""

SCHED_EXITS: Final = counter(
    "slurm_sched_exits_total", "Main scheduling cycles by the reason they ended.", "reason"
)
BACKFILL_EXITS: Final = counter(
    "slurm_backfill_exits_total", "Backfill cycles by the reason they ended.", "reason"
)
RPCS: Final = counter("slurm_rpcs_total", "RPCs served by slurmctld, by type.", "type")
RPC_S: Final = counter("slurm_rpc_seconds_total", "Time slurmctld spent on RPCs, by type.", "type")
RPC_QUEUE: Final = gauge("slurm_rpc_queue", "RPCs waiting in slurmctld.", "type")
RPC_DROPPED: Final = counter(
    "slurm_rpc_dropped_total", "RPCs that slurmctld dropped for lack of time.", "type"
)
USER_RPCS: Final = counter("slurm_user_rpcs_total", "RPCs served by slurmctld, by user.", "user")
USER_RPC_S: Final = counter(
    "slurm_user_rpc_seconds_total", "Time slurmctld spent on RPCs, by user.", "user"
)

UP: Final = gauge("slurm_controller_up", "1 if a slurmctld responds, else 0.", "host", "role")
LATENCY: Final = gauge("slurm_controller_ping_seconds", "Response time of a slurmctld.", "host")
DBD_UP: Final = gauge("slurm_dbd_up", "1 if a slurmdbd responds, else 0.", "host", "role")
DBD_LATENCY: Final = gauge("slurm_dbd_ping_seconds", "Response time of a slurmdbd.", "host")
INFO: Final = gauge(
    "slurm_cluster_info",
    "The cluster, its Slurm version and the API version in use; always 1.",
    "cluster",
    "version",
    "api",
)


def scheduler(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return slurmctld's statistics: schedulers, queues, RPCs."""
    statistics, out = picture.scheduler or Statistics(), MetricBuilder()
    for family, exits in (
        (SCHED_EXITS, statistics.schedule_exit),
        (BACKFILL_EXITS, statistics.bf_exit),
    ):
        for reason in exits.__struct_fields__:
            out.add(family, getattr(exits, reason), reason)
    for rpc in statistics.rpcs_by_message_type:
        out.add(RPCS, rpc.count, rpc.message_type)
        out.add(RPC_S, rpc.total_time * _US, rpc.message_type)
        out.add(RPC_DROPPED, rpc.dropped, rpc.message_type)
    for queue in statistics.pending_rpcs:
        out.add(RPC_QUEUE, queue.count, queue.message_type)
    _users(out, statistics, limits.top_users)
    return [*scheduler_figures.metrics(TABLE, statistics), *out]


def controllers(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return which controllers and databases respond."""
    out = MetricBuilder()
    if (reading := picture.controllers) is None:
        return out
    for up, seconds, pings in (
        (UP, LATENCY, reading.controllers),
        (DBD_UP, DBD_LATENCY, reading.databases),
    ):
        for ping in pings:
            role = "primary" if ping.primary else "backup"
            is_up = ping.responding or getattr(ping, "pinged", "") == "UP"
            out.add(up, is_up, ping.hostname, role)
            out.add(seconds, ping.latency * _US, ping.hostname)
    out.add(INFO, 1, reading.cluster, reading.release, reading.api)
    return out


def _users(out: MetricBuilder, statistics: Statistics, most: int) -> None:
    shown_users = largest(
        {user_rpcs.user: user_rpcs.count for user_rpcs in statistics.rpcs_by_user}, most
    )
    rest, rest_s = 0, 0.0
    for user_rpcs in statistics.rpcs_by_user:
        if user_rpcs.user in shown_users:
            out.add(USER_RPCS, user_rpcs.count, user_rpcs.user)
            out.add(USER_RPC_S, user_rpcs.total_time * _US, user_rpcs.user)
        else:
            rest, rest_s = rest + user_rpcs.count, rest_s + user_rpcs.total_time * _US
    if rest:
        out.add(USER_RPCS, rest, OTHER)
        out.add(USER_RPC_S, rest_s, OTHER)


SCHEDULER: Final = Chapter(
    name="scheduler",
    sources=("scheduler",),
    families=(
        *TABLE,
        SCHED_EXITS, BACKFILL_EXITS, RPCS, RPC_S, RPC_QUEUE, RPC_DROPPED, USER_RPCS, USER_RPC_S,
    ),
    write=scheduler,
)  # fmt: skip
CONTROLLERS: Final = Chapter(
    name="controllers",
    sources=("controllers",),
    families=(UP, LATENCY, DBD_UP, DBD_LATENCY, INFO),
    write=controllers,
)
