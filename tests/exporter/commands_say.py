"""What squeue, sinfo, sdiag, sshare and sacct say, in the form that families are compared with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.client import Sandbox

MIB = 1 << 20
_JOB_COLUMNS = (
    "JobArrayID", "Account", "UserName", "UserID", "Partition", "State", "Reason", "PriorityLong",
    "NumNodes", "tres-alloc", "Dependency", "QOS",
)  # fmt: skip
_NODE_COLUMNS = (
    "NodeHost", "StateComplete", "CPUsState", "Memory", "AllocMem", "Gres", "GresUsed", "PartitionName",
)  # fmt: skip
_WIDTH = 120
_UNITS = {"K": 1 << 10, "M": MIB, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class SqueueRow:
    """A line of `squeue --array`."""

    job_id: str
    account: str
    user: str
    user_id: str
    partitions: Sequence[str]
    state: str
    reason: str
    is_held: bool
    nodes: int
    tres: Mapping[str, float]
    has_dependency: bool
    qos: str

    @property
    def holds(self) -> bool:
        return self.state in {"RUNNING", "SUSPENDED"}

    @property
    def array(self) -> str:
        """What is one job where the waiting tasks of an array are one."""
        return self.job_id.partition("_")[0] if self.state == "PENDING" else self.job_id


@dataclass(frozen=True)
class SinfoRow:
    """A node."""

    name: str
    states: frozenset[str]
    allocated: int
    idle: int
    other: int
    cpus: int
    memory: int
    allocated_memory: int
    gpus: float
    allocated_gpus: float
    partitions: Sequence[str]


def squeue(sandbox: Sandbox) -> Sequence[SqueueRow]:
    columns = ",".join(f"{name}:{_WIDTH}" for name in _JOB_COLUMNS)
    text = sandbox.run("squeue", "--all", "--array", "--noheader", "--states=all", "-O", columns)
    return [_job(_cells(line, len(_JOB_COLUMNS))) for line in text.splitlines()]


def sinfo(sandbox: Sandbox) -> Sequence[SinfoRow]:
    columns = ",".join(f"{name}:{_WIDTH}" for name in _NODE_COLUMNS)
    text = sandbox.run("sinfo", "--all", "--Node", "--noheader", "-O", columns)
    found: dict[str, SinfoRow] = {}
    for line in text.splitlines():
        row = _node(_cells(line, len(_NODE_COLUMNS)))
        before = found.get(row.name)
        partitions = [*(before.partitions if before else ()), *row.partitions]
        found[row.name] = SinfoRow(**{**row.__dict__, "partitions": partitions})
    return list(found.values())


def partitions(sandbox: Sandbox) -> Sequence[str]:
    return sandbox.run("sinfo", "--all", "--noheader", "-o", "%R").split()


def sdiag(sandbox: Sandbox) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(sandbox.run("sdiag", "--json"))["statistics"]
    return found


def sshare(sandbox: Sandbox) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Rows by account and user; the user is empty for an account."""
    lines = sandbox.run("sshare", "--all", "--long", "--parsable2").splitlines()
    head = lines[0].split("|")
    rows = (dict(zip(head, line.split("|"), strict=True)) for line in lines[1:])
    return {(row["Account"].strip(), row["User"].strip()): row for row in rows}


def sacct(sandbox: Sandbox) -> Sequence[Mapping[str, str]]:
    columns = "JobID,Account,Partition,State,CPUTimeRAW,End"
    command = ("sacct", "-a", "-X", "-P", "-n", "-S", "now-1days", "-o", columns)
    lines = sandbox.run(*command).splitlines()
    return [dict(zip(columns.split(","), line.split("|"), strict=True)) for line in lines]


def _cells(line: str, count: int) -> Sequence[str]:
    return [line[n * _WIDTH : (n + 1) * _WIDTH].strip() for n in range(count)]


def _job(cells: Sequence[str]) -> SqueueRow:
    array_id, account, user, user_id, where, state, reason, priority, nodes, tres, needs, qos = (
        cells
    )
    return SqueueRow(
        array_id,
        account,
        user,
        user_id,
        where.split(","),
        state,
        reason,
        priority == "0",
        int(nodes),
        amounts(tres),
        needs not in {"", "(null)"},
        qos,
    )


def _node(cells: Sequence[str]) -> SinfoRow:
    name, states, cpus, memory, allocated_memory, gres, used, where = cells
    allocated, idle, other, total = map(int, cpus.split("/"))
    return SinfoRow(
        name,
        frozenset(states.lower().split("+")),
        allocated,
        idle,
        other,
        total,
        int(memory) * MIB,
        int(allocated_memory) * MIB,
        _gpus(gres),
        _gpus(used),
        [where],
    )


def amounts(tres: str) -> Mapping[str, float]:
    """TRES as a test reads them, memory in bytes."""
    found = {}
    for part in filter(None, tres.split(",")):
        name, _, text = part.partition("=")
        if text[:1].isdigit():
            unit = _UNITS.get(text[-1])
            found[name] = float(text[:-1]) * unit if unit else float(text)
    return found


def _gpus(gres: str) -> float:
    parts = (
        part.partition("(")[0].split(":") for part in gres.split(",") if part.startswith("gpu")
    )
    return sum(float(part[-1]) for part in parts)
