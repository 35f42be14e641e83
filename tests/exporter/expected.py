"""What families are to be, made of what the commands say."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sandbox.client import Sandbox
from tests.exporter import commands_say
from tests.exporter.commands_say import SinfoRow, SqueueRow

Labels = tuple[tuple[str, str], ...]
Expected = Mapping[Labels, float]
Group = tuple[Labels, Sequence[Any]]

_STATES: Final = {
    "bootfail": "BOOT_FAIL", "nodefail": "NODE_FAIL", "node_failed": "NODE_FAIL",
    "node_fail": "NODE_FAIL", "outofmemory": "OUT_OF_MEMORY",
}  # fmt: skip
_NOT_QUEUED: Final = {
    "completing", "configuring", "powerupnode", "powerup_node", "stageout", "expediting",
    "fed_requeued", "requeued", "resizing", "revoked", "signaling",
}  # fmt: skip
"""Flags of jobs; none of the seeded jobs has one."""


class Seen:
    """What the commands say of the seeded queue."""

    def __init__(self, cluster: Sandbox) -> None:
        self.jobs = commands_say.squeue(cluster)
        self.nodes = commands_say.sinfo(cluster)
        self.partitions = commands_say.partitions(cluster)

    def by(self, label: str) -> Iterable[Group]:
        match label:
            case "partition":
                return [
                    ((("partition", name),), [j for j in self.jobs if name in j.partitions])
                    for name in self.partitions
                ]
            case "account":
                names = sorted({job.account for job in self.jobs})
                return [
                    ((("account", name),), [j for j in self.jobs if j.account == name])
                    for name in names
                ]
            case "user" | "username":
                names = sorted({job.user for job in self.jobs})
                return [
                    (((label, name),), [j for j in self.jobs if j.user == name]) for name in names
                ]
            case "qos":
                names = sorted({job.qos for job in self.jobs})
                return [
                    ((("qos", name),), [j for j in self.jobs if j.qos == name]) for name in names
                ]
            case _:
                return [((), self.jobs)]

    def nodes_by(self, label: str) -> Iterable[Group]:
        if label == "partition":
            return [
                ((("partition", name),), [n for n in self.nodes if name in n.partitions])
                for name in self.partitions
            ]
        if label == "node":
            return [((("node", node.name),), [node]) for node in self.nodes]
        return [((), self.nodes)]


def job_figure(suffix: str, jobs: Sequence[SqueueRow], *, arrays_are_one: bool) -> float | None:
    """What squeue says of jobs, by the suffix of a family; None if it does not say that."""
    counted = list({job.array: job for job in jobs}.values()) if arrays_are_one else jobs
    holding = [job for job in jobs if job.holds]
    simple: dict[str, Callable[[], float]] = {
        "": lambda: len(counted),
        "hold": lambda: sum(job.is_held for job in counted),
        "started": lambda: sum(job.state != "PENDING" for job in counted),
        "finished": lambda: sum(job.state not in {"PENDING", "RUNNING", "SUSPENDED"} for job in counted),
        "cpus_alloc": lambda: sum(job.tres.get("cpu", 0) for job in holding),
        "cpus_running": lambda: sum(job.tres.get("cpu", 0) for job in holding),
        "gpus_alloc": lambda: sum(job.tres.get("gres/gpu", 0) for job in holding),
        "memory_alloc": lambda: sum(job.tres.get("mem", 0) for job in holding),
        "memory_alloc_bytes": lambda: sum(job.tres.get("mem", 0) for job in holding),
        "nodes_alloc": lambda: sum(job.tres.get("node", 0) for job in holding),
        "pending_dependency": lambda: sum(
            job.has_dependency and job.state == "PENDING" for job in counted
        ),
        "wait_part_node_limit": lambda: sum(job.reason == "PartitionNodeLimit" for job in counted),
    }  # fmt: skip
    waiting = [job for job in jobs if job.state == "PENDING"]
    able = [job for job in waiting if not job.is_held]
    for name, ones in (("", waiting), ("_nohold", able)):
        simple[f"max_job_nodes{name}"] = lambda ones=ones: max((j.nodes for j in ones), default=0)  # type: ignore[misc]  # bound here
        simple[f"min_job_nodes{name}"] = lambda ones=ones: min((j.nodes for j in ones), default=0)  # type: ignore[misc]  # bound here
    simple["pending_maxnodecount"] = simple["max_job_nodes_nohold"]
    if suffix in simple:
        return simple[suffix]()
    if suffix in _NOT_QUEUED:
        return 0
    state = _STATES.get(suffix, suffix.upper())
    known = {
        "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "PENDING", "PREEMPTED", "RUNNING",
        "SUSPENDED", "TIMEOUT", *_STATES.values(),
    }  # fmt: skip
    return sum(job.state == state for job in counted) if state in known else None


_WORDS: Final = {
    "alloc": "allocated", "cg": "completing", "maint": "maint", "maintenance": "maint", "resv": "reserved",
    "mix": "mixed", "err": "error", "comp": "completing", "no_resp": "not_responding",
    "noresp": "not_responding", "notresponding": "not_responding", "reboot_req": "reboot_requested",
    "rebootrequested": "reboot_requested", "dyn_future": "dynamic_future", "dyn_normal": "dynamic_norm",
}  # fmt: skip


def node_figure(suffix: str, nodes: Sequence[SinfoRow]) -> float | None:
    """What sinfo says of nodes, by the suffix of a family; None if it does not say that."""
    busy = [node for node in nodes if node.states & {"allocated", "mixed"}]
    sizes: dict[str, Callable[[SinfoRow], float]] = {
        "": lambda _: 1,
        "cpus": lambda node: node.cpus,
        "cpus_effective": lambda node: node.cpus,
        "cpus_efctv": lambda node: node.cpus,
        "cpus_alloc": lambda node: node.allocated,
        "memory_bytes": lambda node: node.memory,
        "mem_tot": lambda node: node.memory,
        "mem_avail": lambda node: node.memory,
        "memory_effective_bytes": lambda node: node.memory,
        "mem_alloc": lambda node: node.allocated_memory,
        "memory_alloc_bytes": lambda node: node.allocated_memory,
        "gpus": lambda node: node.gpus,
        "gpus_alloc": lambda node: node.allocated_gpus,
        # `sinfo` calls the CPUs of a drained node other; slurmctld and slurm-exporter do not.
        "cpus_idle": lambda node: node.cpus - node.allocated,
    }
    if suffix in sizes:
        return sum(map(sizes[suffix], nodes))
    if suffix in {"memory_free_bytes", "mem_free"}:
        return 0  # no slurmd on these nodes reports any
    if suffix == "drained":
        return sum("drain" in node.states and node not in busy for node in nodes)
    if suffix == "draining":
        return sum("drain" in node.states and node in busy for node in nodes)
    word = _WORDS.get(suffix, suffix)
    return sum(word in node.states for node in nodes)


def of_jobs(name: str, seen: Seen, *, arrays_are_one: bool, label: str = "") -> Expected | None:
    """What squeue says of a family whose name is that of slurm-exporter or slurmctld."""
    match = re.fullmatch(r"slurm_(?:(user|account|partition)_)?jobs(?:_(.+?))?(?:_total)?", name)
    if not match:
        return None
    suffix = "" if match[2] in {None, "total"} else match[2]
    label = {"user": label or "username"}.get(match[1], match[1])
    found = {}
    for labels, jobs in seen.by(label):
        if label == "username" and arrays_are_one:
            ids = {job.user_id for job in jobs}
            labels = (("userid", ids.pop()), *labels)  # noqa: PLW2901  # that is what it is
        figure = job_figure(suffix, jobs, arrays_are_one=arrays_are_one)
        if figure is None:
            return None
        found[labels] = figure
    return found


def of_nodes(name: str, seen: Seen) -> Expected | None:
    """What sinfo says of a family whose name is that of slurm-exporter or slurmctld."""
    if name == "slurm_partitions":
        return {(): len(seen.partitions)}
    match = re.fullmatch(
        r"slurm_(partition_nodes|partition|nodes|node)(?:_(.+?))?(?:_total)?", name
    )
    if not match:
        return None
    label = {"partition_nodes": "partition", "partition": "partition", "node": "node"}.get(
        match[1], ""
    )
    suffix = "" if match[2] in {None, "total", "nodes"} else match[2]
    found = {}
    for labels, nodes in seen.nodes_by(label):
        figure = node_figure(suffix, nodes)
        if figure is None:
            return None
        found[labels] = figure
    return found
