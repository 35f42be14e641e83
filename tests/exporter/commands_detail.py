"""What scontrol, sdiag, sacctmgr, sshare and sacct say in detail, in the form that own families are compared with."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sandbox.client import Sandbox
from tests.exporter import commands_say

Fields = Mapping[str, str]
_PAIR: Final = re.compile(r"(\S+?)=(.*?)(?=\s+\S+?=|$)")
_RPC: Final = re.compile(r"\s+(\S+)\s+\(\s*\d+\) count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)")
_FIGURE: Final = re.compile(r"\s*(.+?):\s*(\d+)(?: microseconds)?")
_MOMENT: Final = re.compile(r"\s*(.+?):?\s+(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) .*\((\d+)\)")
_SDIAG: Final = {
    "Main schedule statistics": "main",
    "Main scheduler exit": "main exit",
    "Backfilling stats": "backfill",
    "Backfill exit": "backfill exit",
    "Remote Procedure Call statistics by message type": "types",
    "Remote Procedure Call statistics by user": "users",
    "Pending RPC statistics": "pending",
}
_USAGE: Final = re.compile(r"([^\s,=]+)=[^\s,(]*\(([\d.]+)\)")


def show(sandbox: Sandbox, kind: str) -> Sequence[Fields]:
    """The objects of `scontrol show`, each field by its name."""
    blocks = sandbox.run("scontrol", "--all", "show", kind).strip().split("\n\n")
    return [
        dict(pair for line in block.splitlines() for pair in _PAIR.findall(line.strip()))
        for block in (blocks if len(blocks) > 1 else re.split(r"\n(?=\S)", blocks[0]))
        if "=" in block
    ]


def table(sandbox: Sandbox, *command: str) -> Sequence[Fields]:
    """The rows of a command with --parsable2, by the words of its head."""
    lines = sandbox.run(*command).splitlines()
    head = lines[0].split("|")
    return [dict(zip(head, map(str.strip, line.split("|")), strict=True)) for line in lines[1:]]


def sdiag(sandbox: Sandbox) -> tuple[Mapping[str, float], Mapping[str, Mapping[str, Any]]]:
    """The figures of `sdiag`'s text as `section/label`, and the RPCs by `types` and `users`."""
    section, figures = "", {}
    rpcs: dict[str, dict[str, tuple[int, int]]] = {"types": {}, "users": {}}
    for line in sandbox.run("sdiag").splitlines():
        title = next((name for name in _SDIAG if line.startswith(name)), None)
        if title:
            section = _SDIAG[title]
        elif section in rpcs and (match := _RPC.match(line)):
            rpcs[section][match[1]] = int(match[2]), int(match[3])
        elif match := _FIGURE.fullmatch(line) or _MOMENT.fullmatch(line):
            figures[f"{section}/{match[1]}"] = float(match[2])
    found = commands_say.sdiag(sandbox)
    for name, value in found.items():  # sdiag's text leaves the sums out
        if isinstance(value, int | float):
            figures[f"json/{name}"] = float(value)
    return figures, rpcs


def dbd_statistics(sandbox: Sandbox) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, float]]:
    """The RPCs that slurmdbd has served by type, and its last roll-up."""
    text = sandbox.run("sacctmgr", "show", "stats")
    by_type = text.partition("by message type")[2].partition("by user")[0]
    rpcs = {match[1]: (int(match[2]), int(match[3])) for match in _RPC.finditer(by_type)}
    ran = re.search(r"rollup last ran .*\((\d+)\)", text)
    last = re.search(r"Last cycle:\s+(\d+)", text)
    assert ran
    assert last
    return rpcs, {"at_s": float(ran[1]), "last_us": float(last[1])}


def limits_used(sandbox: Sandbox) -> Mapping[tuple[str, ...], Mapping[tuple[str, str], float]]:
    """What slurmctld counts towards limits: by ("qos", name) and ("assoc", account, user)."""
    found: dict[tuple[str, ...], dict[tuple[str, str], float]] = {}
    who: tuple[str, ...] = ()
    for line in sandbox.run("scontrol", "show", "assoc_mgr").splitlines():
        if match := re.match(r"ClusterName=\S+ Account=(\S+) UserName=(\w*)", line):
            who = "assoc", match[1], match[2]
        elif match := re.match(r"QOS=(\w+)\(", line):
            who = "qos", match[1]
        elif who and (match := re.match(r"    (Grp\w+)=", line)):
            kept = found.setdefault(who, {})
            if match[1] == "GrpTRES":
                for name, amount in _USAGE.findall(line.partition("=")[2]):
                    unit = commands_say.MIB if name == "mem" else 1
                    kept["GrpTRES", name] = float(amount) * unit
            for name, amount in _USAGE.findall(line.strip()):
                if name in {"GrpJobs", "GrpSubmitJobs"}:
                    kept[name, ""] = float(amount)
    return found


def moment_s(text: str) -> float:
    """A moment as the commands print it, in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def span_s(text: str) -> float:
    """A span such as `1-02:03:04` or `03:04.500`."""
    days, _, rest = text.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + 86400 * int(days or 0)
