"""The objects that `slurmc` lists: names, collections, and the columns of tables."""

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from slurmclient.client import Client


class Kind(StrEnum):
    """The kinds of objects to list, as typed on the command line."""

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
    """The kinds of objects to watch and change."""

    JOBS = "jobs"
    NODES = "nodes"
    PARTITIONS = "partitions"
    RESERVATIONS = "reservations"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A kind's collection, and the columns of its table."""

    path: str
    """Of the collection in a client: `jobs`, `db.accounts`."""
    header: str
    """Fields, such as `name` or `time.start`."""

    def collection(self, slurm: Client) -> Any:
        """Return the collection of a client."""
        return attrgetter(self.path)(slurm)

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields to show."""
        return tuple(self.header.split())


TABLES: Final = {
    Kind.JOBS: TableSpec(
        "jobs", "job_id name user_name partition job_state state_reason nodes start_time"
    ),
    Kind.NODES: TableSpec(
        "nodes", "name state alloc_cpus cpus alloc_memory real_memory gres reason"
    ),
    Kind.PARTITIONS: TableSpec(
        "partitions", "name partition.state nodes.configured nodes.total cpus.total maximums.time"
    ),
    Kind.RESERVATIONS: TableSpec(
        "reservations", "name start_time end_time node_list users accounts flags"
    ),
    Kind.LICENSES: TableSpec("licenses", "license_name total used free"),
    Kind.SHARES: TableSpec(
        "shares", "name parent type shares shares_normalized usage effective_usage"
    ),
    Kind.ACCOUNTS: TableSpec("db.accounts", "name description organization flags"),
    Kind.ASSOCIATIONS: TableSpec(
        "db.associations", "id cluster account user partition shares_raw default.qos"
    ),
    Kind.CLUSTERS: TableSpec("db.clusters", "name controller.host controller.port nodes"),
    Kind.HISTORY: TableSpec(
        "db.jobs", "job_id name user account state.current exit_code.status time.start time.elapsed"
    ),
    Kind.INSTANCES: TableSpec("db.instances", "instance_id instance_type node_name cluster"),
    Kind.QOS: TableSpec("db.qos", "name priority description flags preempt.list"),
    Kind.TRES: TableSpec("db.tres", "id type name"),
    Kind.USERS: TableSpec("db.users", "name administrator_level default.account flags"),
    Kind.WCKEYS: TableSpec("db.wckeys", "id name user cluster flags"),
}
