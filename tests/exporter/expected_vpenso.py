"""What vpenso's families are to be, made of what the commands say."""

import re
from collections.abc import Sequence

from tests.exporter.commands_say import MIB, SinfoRow
from tests.exporter.expected import Expected, Labels, Seen, job_figure, node_figure, of_jobs


def of_vpenso(name: str, seen: Seen) -> Expected | None:
    """What squeue and sinfo say of a family; None if they do not say it."""
    if match := re.fullmatch(r"slurm_(account|user)_(?:jobs_)?(\w+)", name):
        groups = seen.by(match[1])
        return {
            labels: job_figure(match[2], jobs, arrays_are_one=False) or 0 for labels, jobs in groups
        }
    if match := re.fullmatch(r"slurm_queue_(\w+)", name):
        return {(): job_figure(match[1], seen.jobs, arrays_are_one=False) or 0}
    if name == "slurm_partition_jobs_pending":
        return of_jobs(name, seen, arrays_are_one=False)
    if match := re.fullmatch(r"slurm_(?:partition_)?(c|g)pus_(\w+)", name):
        label = "partition" if "partition" in name else ""
        figure = _gpus if match[1] == "g" else _cpus
        return {labels: figure(match[2], nodes) for labels, nodes in seen.nodes_by(label)}
    if match := re.fullmatch(r"slurm_node_(cpu|mem)_(\w+)", name):
        return {_status(node): _node(match[1], match[2], node) for node in seen.nodes}
    if match := re.fullmatch(r"slurm_nodes_(\w+)", name):
        apart = {"drain", "maint", "reserved", "fail"}
        plain = [node for node in seen.nodes if not node.states & apart]
        nodes = plain if match[1] in {"alloc", "idle", "mix"} else seen.nodes
        return {(): node_figure(match[1], nodes) or 0}
    return None


def _cpus(what: str, nodes: Sequence[SinfoRow]) -> float:
    column = {"alloc": "allocated", "allocated": "allocated", "total": "cpus"}.get(what, what)
    return float(sum(getattr(node, column) for node in nodes))


def _gpus(what: str, nodes: Sequence[SinfoRow]) -> float:
    total, used = sum(n.gpus for n in nodes), sum(n.allocated_gpus for n in nodes)
    other = sum(n.gpus - n.allocated_gpus for n in nodes if "drain" in n.states)
    figures = {
        "total": total,
        "alloc": used,
        "idle": total - used - other,
        "other": other,
        "utilization": used / total,
    }
    return figures[what]


def _node(kind: str, what: str, node: SinfoRow) -> float:
    if kind == "cpu":
        return _cpus(what, [node])
    return (node.memory if what == "total" else node.allocated_memory) // MIB


def _status(node: SinfoRow) -> Labels:
    if "drain" in node.states:
        status = "draining" if node.states & {"allocated", "mixed"} else "drained"
    else:
        (status,) = node.states & {"allocated", "mixed", "idle"}
    return ("node", node.name), ("status", status)
