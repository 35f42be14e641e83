"""Encode domain values as slurmrestd's JSON: `job_desc_msg` and `node_conf`."""

import json
import math
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from bridge.domain.model import identities
from bridge.domain.model.placeholder import Changes, PlaceholderSpec
from bridge.domain.request import notation
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.values import hostlist
from slurmruntime.values.ids import SlurmNode

WORKING_DIRECTORY: Final = "/"
"""Slurm records one for every job; nothing runs there."""


def submission(spec: PlaceholderSpec) -> dict[str, object]:
    """Return a job submission for POST /job/submit.

    User and group are always sent together: without a group Slurm uses the submitter's, which is
    root's. Empty fields are omitted, because slurmrestd treats null or "" differently from absence.
    """
    if spec.also:
        return {"jobs": [_description(component) for component in (spec, *spec.also)]}
    return {"job": _description(spec)}


def _description(spec: PlaceholderSpec) -> dict[str, object]:
    fields: dict[str, object] = {
        "flags": ["EXTERNAL_JOB"],
        "name": spec.name,
        "admin_comment": identities.encode(spec.identity),
        "user_id": spec.user,
        "group_id": spec.group,
        "current_working_directory": WORKING_DIRECTORY,
        "partition": spec.partition,
        "account": spec.account,
        "qos": spec.qos,
        "reservation": spec.reservation,
        "wckey": spec.wckey,
        "minimum_nodes": spec.nodes_min,
        "maximum_nodes": spec.nodes_max,
        "tasks": spec.tasks,
        "cpus_per_task": spec.cpus_per_task,
        "memory_per_node": _number(spec.memory_mib_per_node),
        "memory_per_cpu": _number(spec.memory_mib_per_cpu),
        "tres_per_node": spec.gres_per_node,
        "tres_per_task": spec.gres_per_task,
        "time_limit": _number(spec.time_limit_min),
        "shared": ["none"] if spec.exclusive else None,
        "constraints": spec.constraints,
        "required_nodes": list(spec.required_nodes),
        "distribution": "arbitrary" if spec.is_laid_out else "",
        "excluded_nodes": compressed(spec.excluded_nodes),
        "licenses": spec.licenses,
        "priority": _number(spec.priority),
        "nice": spec.nice,
        "hold": spec.hold or None,
        "begin_time": _number(_seconds(spec.begin_at)),
        "deadline": _seconds(spec.deadline_at),
        "dependency": spec.dependency,
        **_switches(spec.switches),
        "comment": spec.comment,
        "mcs_label": spec.mcs_label,
        "extra": json.dumps(dict(spec.extra)) if spec.extra else "",
    }
    return {key: value for key, value in fields.items() if value not in (None, "", [])}


def compressed(nodes: Sequence[SlurmNode]) -> list[str]:
    """Write a list of distinct nodes, maybe ten thousand, in Slurm's short form."""
    return [_compressed(tuple(nodes))] if nodes else []


@lru_cache(maxsize=64)
def _compressed(nodes: tuple[SlurmNode, ...]) -> str:
    return hostlist.compress(nodes)


def changes(changed: Changes) -> dict[str, object]:
    """Return the fields to change, for POST /job/{id}."""
    fields: dict[str, object] = {
        "minimum_nodes": changed.nodes,
        "maximum_nodes": changed.nodes,
        "tasks": changed.tasks,
        "minimum_cpus": changed.cpus,
        "cpus_per_task": changed.cpus_per_task,
        "memory_per_node": _number(changed.memory_mib_per_node),
        "memory_per_cpu": _number(changed.memory_mib_per_cpu),
        "time_limit": _number(changed.time_limit_min),
        "qos": changed.qos,
    }
    return {key: value for key, value in fields.items() if value is not None}


def node_conf(spec: SlurmNodeSpec) -> str:
    """Return an external node as a line of slurm.conf, for POST /new/node.

    The node gets one socket with all cores: given only a number of CPUs, Slurm assumes as many
    sockets and places jobs 2.3 times slower. NodeAddr is always set: a name that does not resolve
    holds slurmctld's locks for 10 s at each job start.

    Raises:
        ValueError: a value contains a space or a quote, which would start another key.
    """
    fields = {
        "NodeName": spec.name,
        "State": "External",
        "NodeAddr": spec.address,
        "Sockets": "1",
        "CoresPerSocket": str(spec.cpus // spec.threads_per_core),
        "ThreadsPerCore": str(spec.threads_per_core),
        "CPUs": str(spec.cpus),
        "RealMemory": str(spec.memory_mib),
        "Feature": ",".join(spec.features),
        "Gres": spec.gres,
        "GresConf": spec.gres_conf,
        "Topology": spec.topology,
        "Weight": str(spec.weight),
    }
    for key, value in fields.items():
        if any(character.isspace() or character in "\"'" for character in value):
            raise ValueError(
                f"{key} of Slurm node {spec.name} must not contain spaces or quotes: {value!r}"
            )
    return " ".join(f"{key}={value}" for key, value in fields.items() if value)


def _switches(text: str) -> dict[str, object]:
    """Parse `count[@maximum wait]`, as in sbatch's --switches."""
    if not text:
        return {}
    count, _, wait = text.partition("@")
    longest_s = {"wait_for_switch": notation.minutes(wait) * 60} if wait else {}
    return {"required_switches": int(count), **longest_s}


def _number(value: int | None) -> dict[str, object] | None:
    return None if value is None else {"set": True, "infinite": False, "number": value}


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else math.ceil(moment.timestamp())
