"""What `slurmc` can list: names, collections, and the columns of tables."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from slurmclient.client import Client


class Kind(StrEnum):
    """Everything that can be listed, by the word to type."""

    JOBS = "jobs"
    NODES = "nodes"
    PARTITIONS = "partitions"
    RESERVATIONS = "reservations"
    LICENSES = "licenses"
    SHARES = "shares"
    ACCOUNTS = "accounts"
    ASSOCIATIONS = "associations"
    CLUSTERS = "clusters"
    HISTORY = "history"
    INSTANCES = "instances"
    QOS = "qos"
    TRES = "tres"
    USERS = "users"
    WCKEYS = "wckeys"


class Live(StrEnum):
    """What can be watched and changed."""

    JOBS = "jobs"
    NODES = "nodes"
    PARTITIONS = "partitions"
    RESERVATIONS = "reservations"


@dataclass(frozen=True, slots=True)
class Shown:
    """A kind's collection, and the columns of its table."""

    collection: Callable[[Client], Any]
    columns: tuple[str, ...]
    """Fields, such as `name` or `time.start`."""


SHOWN: Final = {
    Kind.JOBS: Shown(
        lambda slurm: slurm.jobs,
        (
            "job_id",
            "name",
            "user_name",
            "partition",
            "job_state",
            "state_reason",
            "nodes",
            "start_time",
        ),
    ),
    Kind.NODES: Shown(
        lambda slurm: slurm.nodes,
        ("name", "state", "alloc_cpus", "cpus", "alloc_memory", "real_memory", "gres", "reason"),
    ),
    Kind.PARTITIONS: Shown(
        lambda slurm: slurm.partitions,
        (
            "name",
            "partition.state",
            "nodes.configured",
            "nodes.total",
            "cpus.total",
            "maximums.time",
        ),
    ),
    Kind.RESERVATIONS: Shown(
        lambda slurm: slurm.reservations,
        ("name", "start_time", "end_time", "node_list", "users", "accounts", "flags"),
    ),
    Kind.LICENSES: Shown(lambda slurm: slurm.licenses, ("license_name", "total", "used", "free")),
    Kind.SHARES: Shown(
        lambda slurm: slurm.shares,
        ("name", "parent", "type", "shares", "shares_normalized", "usage", "effective_usage"),
    ),
    Kind.ACCOUNTS: Shown(
        lambda slurm: slurm.db.accounts, ("name", "description", "organization", "flags")
    ),
    Kind.ASSOCIATIONS: Shown(
        lambda slurm: slurm.db.associations,
        ("id", "cluster", "account", "user", "partition", "shares_raw", "default.qos"),
    ),
    Kind.CLUSTERS: Shown(
        lambda slurm: slurm.db.clusters, ("name", "controller.host", "controller.port", "nodes")
    ),
    Kind.HISTORY: Shown(
        lambda slurm: slurm.db.jobs,
        (
            "job_id",
            "name",
            "user",
            "account",
            "state.current",
            "exit_code.status",
            "time.start",
            "time.elapsed",
        ),
    ),
    Kind.INSTANCES: Shown(
        lambda slurm: slurm.db.instances, ("instance_id", "instance_type", "node_name", "cluster")
    ),
    Kind.QOS: Shown(
        lambda slurm: slurm.db.qos, ("name", "priority", "description", "flags", "preempt.list")
    ),
    Kind.TRES: Shown(lambda slurm: slurm.db.tres, ("id", "type", "name")),
    Kind.USERS: Shown(
        lambda slurm: slurm.db.users, ("name", "administrator_level", "default.account", "flags")
    ),
    Kind.WCKEYS: Shown(lambda slurm: slurm.db.wckeys, ("id", "name", "user", "cluster", "flags")),
}
