"""What own families are to be, made of what the commands say of the seeded queue."""

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from slurmexporter.readings.states import JOB_FLAGS, NODE_FLAGS
from tests.exporter import expected_counters, expected_shared
from tests.exporter.commands_detail import Fields, moment_s, span_s
from tests.exporter.commands_say import MIB, amounts
from tests.exporter.expected import Labels
from tests.exporter.seeded import Evidence

Amount = float | tuple[float, float]
"""A figure, or between which two it lies because it moves."""
Says = Mapping[Labels, Amount]

EMPTY: Final = {
    "slurm_rpc_queue": "no RPC waits in an idle slurmctld",
    "slurm_job_requeues_total": "an external job cannot be requeued; tests/exporter/test_table.py has them",
    "slurm_node_boot_timestamp_seconds": "there is no slurmd in this sandbox that says so",
    "slurm_node_memory_unused_bytes": "there is no slurmd in this sandbox that says so",
    "slurm_nodes_by_version": "there is no slurmd in this sandbox that says so",
}
"""Families that have no series with the seeded queue, as the commands have none, and why."""
UNSAID: Final = {
    "slurm_controller_ping_seconds": "no command prints how long a ping takes",
    "slurm_dbd_ping_seconds": "no command prints how long a ping takes",
    "slurm_pending_reason_age_seconds": "the exporter's own: when it last read the jobs that wait",
    "slurm_exporter_unread_jobs": "the exporter's own: what it has not read yet",
    "slurm_exporter_efficiency_skipped_total": "the exporter's own; the seeded queue waits for it",
    "slurm_job_info": "its labels are those of slurm_job_cpus and the rest, which are compared",
    "slurm_rpc_queue": "no RPC waits in an idle slurmctld",
    "slurm_rpc_dropped_total": "sdiag's text does not have it, and an idle slurmctld drops none",
}  # fmt: skip
"""Families that no command says, and why."""
_RESOURCES: Final = {
    "cpus": "cpu", "gpus": "gres/gpu", "memory_bytes": "mem", "nodes": "node",
}  # fmt: skip


def dice() -> random.Random:
    """For a port."""
    return random.Random()  # noqa: S311  # a port, nothing secret


def difference(ours: Mapping[Labels, float], says: Says) -> object:
    """What is wrong with a family; None if nothing is."""
    wrong = {
        labels: (ours.get(labels), says.get(labels))
        for labels in {*ours, *says}
        if not _is(ours.get(labels), says.get(labels))
    }
    return {"ours, the command's": wrong} if wrong else None


def _is(ours: float | None, says: Amount | None) -> bool:
    if ours is None or says is None:
        return False
    if isinstance(says, tuple):
        return says[0] <= ours <= says[1]
    return ours == says or (math.isfinite(says) and abs(ours - says) <= 1e-6 + 1e-9 * abs(says))


def compared(name: str, seen: Evidence) -> tuple[Mapping[Labels, float], Says | None]:
    """What we and the commands say of an own family; None if no command is asked about it."""
    if (counted := expected_counters.of_records(name, seen)) is not None:
        return counted
    if (shared := expected_shared.of_sharing(name, seen)) is not None:
        return shared
    ours = seen.pages["own"].get(name, {})
    for pattern, says in _RULES.items():
        if match := re.fullmatch(f"slurm_{pattern}", name):
            return _but_zeros(name, ours), says(seen, *match.groups())
    return ours, None


def _but_zeros(name: str, ours: Mapping[Labels, float]) -> Mapping[Labels, float]:
    """States in which there is nothing have series, too; the commands do not name them."""
    return {labels: n for labels, n in ours.items() if n} if "_by_" in name else ours


def _jobs_by_state(seen: Evidence, label: str | None) -> Says:
    return {
        tuple(sorted((*labels, ("state", state)))): sum(job.state == state for job in jobs)
        for labels, jobs in seen.seen.by(label or "")
        for state in {job.state for job in jobs}
    }


def _amounts(seen: Evidence, label: str | None, what: str, resource: str) -> Says:
    """What jobs hold or ask for; squeue has a request in the same column."""
    column = _RESOURCES[resource]
    return {
        labels: sum(
            job.tres.get(column, 0)
            for job in jobs
            if (job.holds if what == "allocated" else job.state == "PENDING")
        )
        for labels, jobs in seen.seen.by(label or "partition")
    }


_UNAVAILABLE: Final = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)
"""What squeue prints for the reason Resources where nodes are missing."""


def _pending(seen: Evidence) -> Says:
    found: dict[Labels, float] = {}
    for (where,), jobs in seen.seen.by("partition"):
        for job in jobs:
            if job.state == "PENDING":
                reason = "Resources" if job.reason == _UNAVAILABLE else job.reason
                why = (where, ("reason", reason))
                found[why] = found.get(why, 0) + 1
    return found


def _oldest(seen: Evidence) -> Says:
    """How long the job that could start has waited longest: by scontrol, held jobs have priority 0."""
    found: dict[Labels, Amount] = {}
    for name in seen.seen.partitions:
        waits = [
            moment_s(job["EligibleTime"] if job["EligibleTime"] != "Unknown" else job["SubmitTime"])
            for job in seen.jobs
            if job["JobState"] == "PENDING" and name in job["Partition"].split(",")
            and not job["Reason"].startswith("JobHeld")
        ]  # fmt: skip
        low, high = (max(0, at_s - min(waits, default=at_s + 2)) for at_s in seen.at_s)
        found[("partition", name),] = (low, high) if waits else 0
    return found


def _single(seen: Evidence, read: Callable[[Fields], float | None]) -> Says:
    alive = (job for job in seen.jobs if job["JobState"] in {"PENDING", "RUNNING"})
    values = ((job["JobId"], read(job)) for job in alive)
    return {(("job_id", name),): value for name, value in values if value is not None}


def _tres(column: str) -> Callable[[Fields], float]:
    def read(job: Fields) -> float:
        held = job["AllocTRES"] if job["JobState"] == "RUNNING" else job["ReqTRES"]
        return amounts(held).get(column, 0)

    return read


def _started(job: Fields) -> float | None:
    return moment_s(job["StartTime"]) if job["JobState"] == "RUNNING" else None


def _limit(job: Fields) -> float | None:
    return moment_s(job["EndTime"]) if job["JobState"] == "RUNNING" else None


def _states(nodes: Iterable[Fields], *more: tuple[str, str], flags: bool = False) -> Says:
    found: dict[Labels, float] = {}
    for node in nodes:
        base, *rest = node["State"].split("+")
        for state in (flag for flag in rest if flag in NODE_FLAGS) if flags else (base,):
            key = tuple(sorted((*more, ("flag" if flags else "state", state))))
            found[key] = found.get(key, 0) + 1
    return found


def _of_nodes(seen: Evidence, read: Callable[[Fields], float | None]) -> Says:
    values = ((node["NodeName"], read(node)) for node in seen.nodes)
    return {(("node", name),): value for name, value in values if value is not None}


def _gres(node: Fields, column: str) -> float:
    return amounts(node[column]).get("gres/gpu", 0)


def _is_available(node: Fields) -> bool:
    out = {"DRAIN", "FAIL", "DOWN", "NOT_RESPONDING", "MAINTENANCE", "POWERED_DOWN"}
    return not out & set(node["State"].split("+"))


def _members(seen: Evidence, partition: Fields) -> list[Fields]:
    name = partition["PartitionName"]
    return [node for node in seen.nodes if name in node["Partitions"].split(",")]


def _of_partitions(seen: Evidence, read: Callable[[Fields, list[Fields]], float]) -> Says:
    return {
        (("partition", one["PartitionName"]),): read(one, _members(seen, one))
        for one in seen.partitions
    }


def _capacity(seen: Evidence, column: str) -> Says:
    found: dict[Labels, float] = {}
    for one in seen.partitions:
        nodes = _members(seen, one)
        has = [amounts(node[column]) for node in nodes]
        busy = [node for node in nodes if node["State"].split("+")[0] in {"MIXED", "ALLOCATED"}]
        sums = {
            "nodes": len(nodes if column == "CfgTRES" else busy),
            **{
                resource: sum(tres.get(name, 0) for tres in has)
                for resource, name in _RESOURCES.items()
                if resource != "nodes"
            },
        }
        for resource, amount in sums.items():
            found[("partition", one["PartitionName"]), ("resource", resource)] = amount
    return found


def _time_limit(one: Fields, _: Any) -> float:
    return float("inf") if one["MaxTime"] == "UNLIMITED" else span_s(one["MaxTime"])


def _reasons(seen: Evidence) -> Iterable[tuple[str, str, str, str]]:
    for node in seen.nodes:
        if match := re.fullmatch(r"(.*) \[(.*)@(.*)\]", node.get("Reason", "")):
            yield node["NodeName"], match[1], match[2], match[3]


def _answer(text: str) -> Says:
    """What a ping says: `Slurmctld(primary) at vm is UP`."""
    found = re.findall(r"\((\w+)\) at (\S+) is (\w+)", text)
    return {(("host", host), ("role", role)): word == "UP" for role, host, word in found}


def _cluster(seen: Evidence) -> Says:
    (labels,) = seen.pages["own"]["slurm_cluster_info"]
    said = {**dict(labels), "cluster": "sandbox", "version": seen.release}
    return {tuple(sorted(said.items())): 1}


_GPU: Final = ("gres", "gpu"), ("type", "")
_RULES: Final[Mapping[str, Callable[..., Says]]] = {
    "controller_up": lambda seen: _answer(seen.ping),
    "dbd_up": lambda seen: _answer(seen.database_ping),
    "cluster_info": _cluster,
    r"(?:(\w+)_)?jobs_by_state": _jobs_by_state,
    "jobs_by_flag": lambda seen: {},
    "jobs_held": lambda seen: {(): sum(job.is_held for job in seen.seen.jobs)},
    r"(?:(account|user|qos)_)?(allocated|requested)_(cpus|gpus|memory_bytes|nodes)": _amounts,
    "pending_jobs": _pending,
    "pending_dependent_jobs": lambda seen: {(): sum(j.has_dependency for j in seen.seen.jobs)},
    "oldest_pending_seconds": _oldest,
    "job_cpus": lambda seen: _single(seen, _tres("cpu")),
    "job_gpus": lambda seen: _single(seen, _tres("gres/gpu")),
    "job_memory_bytes": lambda seen: _single(seen, _tres("mem")),
    "job_start_timestamp_seconds": lambda seen: _single(seen, _started),
    "job_end_limit_timestamp_seconds": lambda seen: _single(seen, _limit),
    "nodes_by_state": lambda seen: _states(seen.nodes),
    "nodes_by_flag": lambda seen: _states(seen.nodes, flags=True),
    "nodes_by_version": lambda seen: {},
    "nodes_available": lambda seen: {(): sum(map(_is_available, seen.nodes))},
    "node_available": lambda seen: _of_nodes(seen, _is_available),
    "node_cpu_size": lambda seen: _of_nodes(seen, lambda node: float(node["CPUTot"])),
    "node_cpu_allocated": lambda seen: _of_nodes(seen, lambda node: float(node["CPUAlloc"])),
    "node_cpu_effective": lambda seen: _of_nodes(seen, lambda node: float(node["CPUEfctv"])),
    "node_load": lambda seen: _of_nodes(seen, lambda node: float(node["CPULoad"])),
    "node_memory_(?:size|available_to_jobs)_bytes": lambda seen: _of_nodes(
        seen, lambda node: float(node["RealMemory"]) * MIB
    ),
    "node_memory_allocated_bytes": lambda seen: _of_nodes(
        seen, lambda node: float(node["AllocMem"]) * MIB
    ),
    "node_memory_unused_bytes": lambda seen: _of_nodes(
        seen, lambda n: None if n["FreeMem"] == "N/A" else float(n["FreeMem"]) * MIB
    ),
    "node_gres": lambda seen: {
        tuple(sorted((*_GPU, ("node", node["NodeName"])))): _gres(node, "CfgTRES")
        for node in seen.nodes
    },
    "node_gres_allocated": lambda seen: {
        tuple(sorted((*_GPU, ("node", node["NodeName"])))): _gres(node, "AllocTRES")
        for node in seen.nodes
    },
    "gres": lambda seen: {_GPU: sum(_gres(node, "CfgTRES") for node in seen.nodes)},
    "gres_allocated": lambda seen: {_GPU: sum(_gres(node, "AllocTRES") for node in seen.nodes)},
    "node_reason_info": lambda seen: {
        (("node", name), ("reason", why), ("user", who)): 1 for name, why, who, _ in _reasons(seen)
    },
    "node_reason_since_timestamp_seconds": lambda seen: {
        (("node", name),): moment_s(when) for name, _, _, when in _reasons(seen)
    },
    "node_boot_timestamp_seconds": lambda seen: _of_nodes(
        seen, lambda n: None if n["BootTime"] == "None" else moment_s(n["BootTime"])
    ),
    "node_last_busy_timestamp_seconds": lambda seen: _of_nodes(
        seen, lambda n: moment_s(n["LastBusyTime"])
    ),
    "partition_capacity": lambda seen: _capacity(seen, "CfgTRES"),
    "partition_allocated": lambda seen: _capacity(seen, "AllocTRES"),
    "partition_nodes_by_state": lambda seen: {
        labels: n
        for one in seen.partitions
        for labels, n in _states(_members(seen, one), ("partition", one["PartitionName"])).items()
    },
    "partition_nodes_available": lambda seen: _of_partitions(
        seen, lambda _, nodes: sum(map(_is_available, nodes))
    ),
    "partition_up": lambda seen: _of_partitions(seen, lambda one, _: one["State"] == "UP"),
    "partition_time_limit_seconds": lambda seen: _of_partitions(seen, _time_limit),
}
"""What the commands say, by the names of families."""
assert JOB_FLAGS, "none of the seeded jobs has one of these: jobs_by_flag is 0"
