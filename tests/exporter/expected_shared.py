"""What families of shares, licenses, reservations, limits and RPCs are to be, made of what the commands say."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.exporter.commands_detail import Fields, moment_s, span_s
from tests.exporter.commands_say import amounts
from tests.exporter.expected import Labels
from tests.exporter.seeded import Evidence

Amounts = Mapping[Labels, float | tuple[float, float]]
Both = tuple[Mapping[Labels, float], Amounts]
_US: Final = 1e-6
_SHARES: Final = {
    "raw": "RawShares",
    "norm": "NormShares",
    "usage_norm": "NormUsage",
    "usage_effective": "EffectvUsage",
    "fairshare_factor": "FairShare",
    "level": "LevelFS",
}
_QOS: Final = {
    "GrpJobs": "GrpJobs", "GrpSubmitJobs": "GrpSubmit", "MaxJobsPerUser": "MaxJobsPU",
    "MaxJobsPerAccount": "MaxJobsPA", "MaxSubmitJobsPerUser": "MaxSubmitPU",
    "MaxSubmitJobsPerAccount": "MaxSubmitPA", "GrpWall": "GrpWall", "MaxWallDurationPerJob": "MaxWall",
    "GrpTRES": "GrpTRES", "MaxTRESPerUser": "MaxTRESPU", "MaxTRESPerAccount": "MaxTRESPA",
    "MaxTRESPerJob": "MaxTRES",
}  # fmt: skip
_ASSOC: Final = {
    "GrpJobs": "GrpJobs", "GrpSubmitJobs": "GrpSubmit", "MaxJobs": "MaxJobs",
    "MaxSubmitJobs": "MaxSubmit", "GrpWall": "GrpWall", "MaxWallDurationPerJob": "MaxWall",
    "GrpTRES": "GrpTRES", "MaxTRESPerJob": "MaxTRES",
}  # fmt: skip
_LICENSE: Final = {"total": "Total", "used": "Used", "free": "Free", "reserved": "Reserved"}
_RESERVATION: Final[Mapping[str, Callable[[Fields], float]]] = {
    "start_timestamp_seconds": lambda one: moment_s(one["StartTime"]),
    "end_timestamp_seconds": lambda one: moment_s(one["EndTime"]),
    "nodes": lambda one: float(one["NodeCnt"]),
    "cores": lambda one: float(one["CoreCnt"]),
}
_COUNTED: Final = {
    ("GrpJobs", ""), ("GrpSubmitJobs", ""), ("GrpTRES", "cpu"), ("GrpTRES", "mem"), ("GrpTRES", "gres/gpu"),
}  # fmt: skip
"""Nodes are not among them: Slurm counts each node once however many jobs it has; billing is no limit's."""


def of_sharing(name: str, seen: Evidence) -> Both | None:
    """What we and the commands say of a family; None if it is none of these."""
    ours = seen.pages["own"].get(name, {})
    for pattern, says in _RULES.items():
        if match := re.fullmatch(f"slurm_{pattern}", name):
            return says(seen, ours, *match.groups())
    return None


def _shares(seen: Evidence, ours: Mapping[Labels, float], what: str) -> Both:
    """What sshare prints nothing for is 0 or absent here: the root's usage, the factors of accounts."""
    said = {
        _who(row): float(row[_SHARES[what]]) for row in seen.shares if row[_SHARES[what]] not in {"", "parent"}
    }  # fmt: skip
    silent = {_who(row) for row in seen.shares} - said.keys()
    return {labels: n for labels, n in ours.items() if labels not in silent}, said


def _running(seen: Evidence, ours: Mapping[Labels, float]) -> Both:
    return ours, dict(_by_tres(seen.shares, "TRESRunMins", 60))


def _usage(seen: Evidence, _: Mapping[Labels, float]) -> Both:
    """Usage in sshare is in whole minutes, and it decays while we read."""
    ours = seen.ended.get("slurm_share_usage_seconds", {})
    said = dict(_by_tres(seen.used_shares, "GrpTRESRaw", 60))
    billing = {_who(row): float(row["RawUsage"]) for row in seen.used_shares}
    found: dict[Labels, float | tuple[float, float]] = {}
    for labels in ours.keys() | said.keys():
        named = dict(labels)
        if named.pop("tres") == "billing":
            seconds = billing[tuple(sorted(named.items()))]
            found[labels] = seconds - 1.5, seconds + 1.5
        else:
            found[labels] = said.get(labels, 0), said.get(labels, 0) + 60
    return ours, found


def _by_tres(rows: object, column: str, unit: float) -> Iterator[tuple[Labels, float]]:
    for row in rows:  # type: ignore[attr-defined]  # of sshare
        for part in row[column].split(","):
            name, _, amount = part.partition("=")
            if float(amount or 0):
                yield tuple(sorted((*_who(row), ("tres", name)))), float(amount) * unit


def _who(row: Fields) -> Labels:
    return ("account", row["Account"]), ("partition", ""), ("user", row["User"])


def _license(seen: Evidence, ours: Mapping[Labels, float], what: str) -> Both:
    key = "LicenseName"
    if what == "deficit":  # scontrol prints it for the licenses of a server only
        return ours, {(("license", one[key]),): 0 for one in seen.licenses}
    return ours, {(("license", one[key]),): float(one[_LICENSE[what]]) for one in seen.licenses}


def _reservation(seen: Evidence, ours: Mapping[Labels, float], what: str) -> Both:
    if what != "info":
        read = _RESERVATION[what]
        return ours, {
            (("reservation", one["ReservationName"]),): read(one) for one in seen.reservations
        }
    return ours, {
        (
            ("accounts", _word(one["Accounts"])),
            ("flags", _word(one["Flags"])),
            ("partition", _word(one["PartitionName"])),
            ("reservation", one["ReservationName"]),
            ("users", _word(one["Users"])),
        ): 1
        for one in seen.reservations
    }


def _word(text: str) -> str:
    return "" if text == "(null)" else text


def _limits(seen: Evidence, ours: Mapping[Labels, float], kind: str) -> Both:
    columns = _QOS if kind == "qos" else _ASSOC
    found: dict[Labels, float] = {}
    for row in seen.limits[kind]:
        who = (
            (("qos", row["Name"]),)
            if kind == "qos"
            else (
                ("account", row["Account"]),
                ("partition", row["Partition"]),
                ("user", row["User"]),
            )
        )
        for name, column in columns.items():
            for tres, amount in _limit(name, row[column]):
                found[tuple(sorted((*who, ("limit", name), ("tres", tres))))] = amount
    return ours, found


def _limit(name: str, text: str) -> Iterator[tuple[str, float]]:
    if "TRES" in name:
        yield from amounts(text).items()
    elif text:
        yield "", span_s(text) if "Wall" in name else float(text)


def _used(seen: Evidence, ours: Mapping[Labels, float], kind: str) -> Both:
    """What counts; groups without any job have no series here."""
    found: dict[Labels, float] = {}
    for (what, *who), sums in seen.limits_used.items():
        if what != kind or not sums.get(("GrpSubmitJobs", "")):
            continue
        names = ("qos",) if kind == "qos" else ("account", "user")
        for (limit, tres), amount in sums.items():
            if (limit, tres) in _COUNTED:
                labels = (*zip(names, who, strict=True), ("limit", limit), ("tres", tres))
                found[tuple(sorted(labels))] = amount
    return {labels: n for labels, n in ours.items() if n}, {
        labels: n for labels, n in found.items() if n
    }


def _rpcs(seen: Evidence, _: Mapping[Labels, float], user: str | None, what: str) -> Both:
    before, page, after = seen.rpcs
    kind, label = ("users", "user") if user else ("types", "type")
    figure = 1 if what == "_seconds" else 0
    unit = _US if figure else 1
    found: dict[Labels, tuple[float, float]] = {
        ((label, name),): (before[kind].get(name, (0, 0))[figure] * unit - 1e-9, counts[figure] * unit + 1e-9)
        for name, counts in after[kind].items()
    }  # fmt: skip
    ours = page[f"slurm_{user or ''}rpc{'_seconds' if figure else 's'}_total"]
    return ours, {labels: span for labels, span in found.items() if labels in ours or span[0] > 0}


def _dbd_rpcs(seen: Evidence, ours: Mapping[Labels, float], what: str) -> Both:
    (before, _), (after, _) = seen.dbd
    figure = 1 if what == "_seconds" else 0
    unit = _US if figure else 1
    found = {
        (("type", name),): (before.get(name, (0, 0))[figure] * unit - 1e-9, counts[figure] * unit + 1e-9)
        for name, counts in after.items()
    }  # fmt: skip
    return ours, {labels: span for labels, span in found.items() if labels in ours or span[0] > 0}


def _rollup(seen: Evidence, ours: Mapping[Labels, float], what: str) -> Both:
    """Sacctmgr prints one roll-up for all kinds; the hourly one ran when slurmdbd started."""
    (_, last), _ = seen.dbd
    amount = last["last_us"] * _US if what == "duration" else last["at_s"]
    kinds = {"hourly": amount, "daily": 0.0, "monthly": 0.0}
    return ours, {(("kind", kind),): value for kind, value in kinds.items()}


_RULES: Final[Mapping[str, Callable[..., Both]]] = {
    "share_usage_seconds": _usage,
    "share_running_seconds": _running,
    r"share_(\w+)": _shares,
    r"license_(\w+)": _license,
    r"reservation_(\w+)": _reservation,
    r"(qos|assoc)_limit": _limits,
    r"(qos|assoc)_usage": _used,
    r"(user_)?rpc(s|_seconds)_total": _rpcs,
    r"dbd_rpc(s|_seconds)_total": _dbd_rpcs,
    r"dbd_rollup_last_(duration|timestamp)_seconds": _rollup,
}
