"""Own names: what is shared: fair-share, licenses, reservations, limits and their usage."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from slurmclient.models import Association, Qos, Reservation, Tres
from slurmexporter.families.chapter import Chapter, Limits, Written
from slurmexporter.families.picture import AccountingReading, Efficiency, Picture
from slurmexporter.readings.tres import MIB
from slurmexporter.text.budget import largest
from slurmexporter.text.family import Family, Metric

_MINUTE_S: Final = 60
_US: Final = 1e-6
_WHO: Final = ("account", "user", "partition")


def _share(name: str, words: str, *labels: str) -> Family:
    return Family(
        f"slurm_share_{name}",
        "gauge",
        f"{words} The user is empty for an account.",
        (*_WHO, *labels),
    )


SHARES: Final = _share(
    "raw", "Shares of a user or account; NaN for those that inherit them (parent)."
)
NORM: Final = _share("norm", "Shares, normalized by those of all.")
USAGE_NORM: Final = _share("usage_norm", "Usage, normalized by that of all.")
USAGE_EFFECTIVE: Final = _share(
    "usage_effective", "Usage that counts, with that of the account's others."
)
FACTOR: Final = _share("fairshare_factor", "Fair-share factor of the priority, from 0 to 1.")
LEVEL: Final = _share("level", "Fair-share among siblings: above 1 if underserved.")
USAGE: Final = _share(
    "usage_seconds",
    "Decayed usage in seconds of a trackable resource; memory in MiB-seconds.",
    "tres",
)
RUNNING: Final = _share(
    "running_seconds", "What running jobs may still use; memory in MiB-seconds.", "tres"
)

LICENSE: Final = Family("slurm_license_total", "gauge", "Licenses there are.", ("license",))
LICENSE_USED: Final = Family(
    "slurm_license_used", "gauge", "Licenses that jobs have.", ("license",)
)
LICENSE_FREE: Final = Family("slurm_license_free", "gauge", "Licenses that are free.", ("license",))
LICENSE_RESERVED: Final = Family(
    "slurm_license_reserved", "gauge", "Licenses that are reserved.", ("license",)
)
LICENSE_DEFICIT: Final = Family(
    "slurm_license_deficit",
    "gauge",
    "Licenses missing from the cluster's share of a server's.",
    ("license",),
)


def _reservation(name: str, words: str, *labels: str) -> Family:
    return Family(f"slurm_reservation_{name}", "gauge", words, ("reservation", *labels))


RESERVATION: Final = _reservation(
    "info", "A reservation; always 1.", "partition", "users", "accounts", "flags"
)
RESERVATION_START: Final = _reservation("start_timestamp_seconds", "When a reservation starts.")
RESERVATION_END: Final = _reservation("end_timestamp_seconds", "When a reservation ends.")
RESERVATION_NODES: Final = _reservation("nodes", "Nodes of a reservation.")
RESERVATION_CORES: Final = _reservation("cores", "Cores of a reservation.")

QOS_LIMIT: Final = Family(
    "slurm_qos_limit",
    "gauge",
    "Limits of a QOS by the names of sacctmgr(1); memory in bytes, times in seconds.",
    ("qos", "limit", "tres"),
)
QOS_USAGE: Final = Family(
    "slurm_qos_usage",
    "gauge",
    "What counts towards the limits of a QOS for all its jobs together.",
    ("qos", "limit", "tres"),
)
ASSOC_LIMIT: Final = Family(
    "slurm_assoc_limit",
    "gauge",
    "Limits of an association by the names of sacctmgr(1); memory in bytes, times in seconds.",
    ("account", "user", "partition", "limit", "tres"),
)
ASSOC_USAGE: Final = Family(
    "slurm_assoc_usage",
    "gauge",
    "What counts towards the limits of an association and its children.",
    ("account", "user", "limit", "tres"),
)
DBD_RPCS: Final = Family(
    "slurm_dbd_rpcs_total", "counter", "RPCs that slurmdbd has served.", ("type",)
)
DBD_RPC_S: Final = Family(
    "slurm_dbd_rpc_seconds_total", "counter", "Time that slurmdbd has spent on RPCs.", ("type",)
)
ROLLUP: Final = Family(
    "slurm_dbd_rollup_last_duration_seconds", "gauge", "Duration of the last roll-up.", ("kind",)
)
ROLLUP_LAST: Final = Family(
    "slurm_dbd_rollup_last_timestamp_seconds",
    "gauge",
    "When slurmdbd last rolled up usage.",
    ("kind",),
)

CPU_EFFICIENCY: Final = Family(
    "slurm_job_cpu_efficiency_ratio",
    "histogram",
    "CPU time that ended jobs used, by the CPU time they held. Needs --efficiency.",
    ("partition",),
)
MEMORY_EFFICIENCY: Final = Family(
    "slurm_job_memory_efficiency_ratio",
    "histogram",
    "The most memory that ended jobs used at once, by the memory they held. Needs --efficiency.",
    ("partition",),
)
WASTED_CPU: Final = Family(
    "slurm_wasted_cpu_seconds_total",
    "counter",
    "CPU time that ended jobs held and did not use. Needs --efficiency.",
    ("account",),
)
WASTED_MEMORY: Final = Family(
    "slurm_wasted_memory_byte_seconds_total",
    "counter",
    "Memory that ended jobs held and never used, times how long they ran. Needs --efficiency.",
    ("account",),
)
NOT_MEASURED: Final = Family(
    "slurm_exporter_efficiency_skipped_total",
    "counter",
    "Ended jobs whose efficiency was not read: no steps, no record, or too many at once.",
)


def shares(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return the fair-share tree, of the users with the most usage."""
    out, found = Written(), picture.shares or ()
    kept = largest({one.name: one.usage for one in found if "USER" in one.type}, limits.top_users)
    for one in found:
        is_user = "USER" in one.type
        if is_user and one.name not in kept:
            continue
        who = (one.parent, one.name, one.partition) if is_user else (one.name, "", "")
        for family, value in (
            (SHARES, one.shares),
            (NORM, one.shares_normalized),
            (USAGE_NORM, one.usage_normalized),
            (USAGE_EFFECTIVE, one.effective_usage),
            (FACTOR, one.fairshare.factor),
            (LEVEL, one.fairshare.level),
        ):
            if value is not None:
                out.add(family, value, *who)
        for usage in one.tres.usage:
            if usage.value:
                out.add(USAGE, usage.value, *who, usage.name)
        for running in one.tres.run_seconds:
            if running.value:
                out.add(RUNNING, running.value, *who, running.name)
    return out


def licenses(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the licenses."""
    out = Written()
    for one in picture.licenses or ():
        for family, value in (
            (LICENSE, one.total),
            (LICENSE_USED, one.used),
            (LICENSE_FREE, one.free),
            (LICENSE_RESERVED, one.reserved),
            (LICENSE_DEFICIT, one.last_deficit),
        ):
            out.add(family, value, one.license_name)
    return out


def reservations(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the reservations."""
    out = Written()
    for one in picture.reservations or ():
        out.add(RESERVATION, 1, one.name, *_words(one))
        out.add(RESERVATION_START, _stamp(one.start_time), one.name)
        out.add(RESERVATION_END, _stamp(one.end_time), one.name)
        out.add(RESERVATION_NODES, one.node_count, one.name)
        out.add(RESERVATION_CORES, one.core_count, one.name)
    return out


def accounting(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return limits of QOS and associations, and slurmdbd's statistics."""
    out, reading = Written(), picture.accounting
    if reading is None:
        return out
    _limits(out, reading, limits)
    for rpc in reading.statistics.rpcs:
        out.add(DBD_RPCS, rpc.count, rpc.rpc)
        out.add(DBD_RPC_S, rpc.time.total * _US, rpc.rpc)
    rollups = reading.statistics.rollups
    for kind, one in (
        ("hourly", rollups.hourly),
        ("daily", rollups.daily),
        ("monthly", rollups.monthly),
    ):
        out.add(ROLLUP, one.duration.last, kind)
        out.add(ROLLUP_LAST, _stamp(one.last_run), kind)
    return out


def usage(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return what counts towards limits: jobs and resources by QOS, account and user."""
    out = Written()
    if picture.jobs is None:
        return out
    totals: dict[tuple[Family, tuple[str, ...]], dict[tuple[str, str], float]] = {}
    cells = [cell for cell in picture.jobs.cells if cell.holds or cell.is_pending]
    users: dict[str, float] = {}
    for cell in cells:
        users[cell.traits.user] = users.get(cell.traits.user, 0) + cell.tasks
    kept = largest(users, limits.top_users)
    for cell in cells:
        amounts: dict[tuple[str, str], float] = {("GrpSubmitJobs", ""): cell.tasks}
        if cell.holds:
            amounts |= {
                ("GrpJobs", ""): cell.tasks,
                ("GrpTRES", "cpu"): cell.cpus,
                ("GrpTRES", "mem"): cell.memory_bytes,
                ("GrpTRES", "node"): cell.nodes,
                ("GrpTRES", "gres/gpu"): cell.gpus,
            }
        traits = cell.traits
        groups: list[tuple[Family, tuple[str, ...]]] = [
            (QOS_USAGE, (traits.qos,)),
            (ASSOC_USAGE, (traits.account, "")),
        ]
        if traits.user in kept:
            groups.append((ASSOC_USAGE, (traits.account, traits.user)))
        for group in groups:
            sums = totals.setdefault(group, {})
            for what, amount in amounts.items():
                sums[what] = sums.get(what, 0) + amount
    for (family, who), sums in totals.items():
        for what, amount in sums.items():
            out.add(family, amount, *who, *what)
    return out


def efficiency(picture: Picture, _: Limits) -> Iterator[Metric]:
    """Return how much of what they held ended jobs used."""
    found = picture.efficiency or Efficiency()
    yield CPU_EFFICIENCY, [((name,), one) for name, one in sorted(found.cpu.items())]
    yield MEMORY_EFFICIENCY, [((name,), one) for name, one in sorted(found.memory.items())]
    yield WASTED_CPU, [((name,), one) for name, one in sorted(found.wasted_cpu_s.items())]
    yield (
        WASTED_MEMORY,
        [((name,), one) for name, one in sorted(found.wasted_memory_byte_s.items())],
    )
    yield NOT_MEASURED, [((), found.skipped)]


def _limits(out: Written, reading: AccountingReading, limits: Limits) -> None:
    for qos in reading.qos:
        for name, tres, value in _qos_limits(qos):
            out.add(QOS_LIMIT, value, qos.name, name, tres)
    users = {one.user: 1.0 for one in reading.associations if one.user}
    kept = largest(users, limits.top_users)
    for one in reading.associations:
        if one.user and one.user not in kept:
            continue
        for name, tres, value in _association_limits(one):
            out.add(ASSOC_LIMIT, value, one.account, one.user, one.partition, name, tres)


def _qos_limits(qos: Qos) -> Iterator[tuple[str, str, float]]:
    most = qos.limits.max
    yield from _numbers(
        {
            "GrpJobs": most.active_jobs.count,
            "GrpSubmitJobs": most.jobs.count,
            "MaxJobsPerUser": most.jobs.active_jobs.per.user,
            "MaxJobsPerAccount": most.jobs.active_jobs.per.account,
            "MaxSubmitJobsPerUser": most.jobs.per.user,
            "MaxSubmitJobsPerAccount": most.jobs.per.account,
            "GrpWall": _minutes(most.wall_clock.per.qos),
            "MaxWallDurationPerJob": _minutes(most.wall_clock.per.job),
        }
    )
    yield from _tres(
        {
            "GrpTRES": most.tres.total,
            "MaxTRESPerUser": most.tres.per.user,
            "MaxTRESPerAccount": most.tres.per.account,
            "MaxTRESPerJob": most.tres.per.job,
        }
    )


def _association_limits(one: Association) -> Iterator[tuple[str, str, float]]:
    most = one.max
    yield from _numbers(
        {
            "GrpJobs": most.jobs.per.count,
            "GrpSubmitJobs": most.jobs.per.submitted,
            "MaxJobs": most.jobs.active,
            "MaxSubmitJobs": most.jobs.total,
            "GrpWall": _minutes(most.per.account.wall_clock),
            "MaxWallDurationPerJob": _minutes(most.jobs.per.wall_clock),
        }
    )
    yield from _tres({"GrpTRES": most.tres.total, "MaxTRESPerJob": most.tres.per.job})


def _numbers(values: Mapping[str, float | None]) -> Iterator[tuple[str, str, float]]:
    for name, value in values.items():
        if value is not None and value != float("inf"):
            yield name, "", value


def _tres(values: Mapping[str, Sequence[Tres]]) -> Iterator[tuple[str, str, float]]:
    for name, several in values.items():
        for one in several:
            full = f"{one.type}/{one.name}" if one.name else one.type
            yield name, full, one.count * (MIB if one.type == "mem" else 1)


def _minutes(value: float | None) -> float | None:
    return None if value is None else value * _MINUTE_S


def _stamp(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0


def _words(one: Reservation) -> tuple[str, str, str, str]:
    return one.partition, one.users, one.accounts, ",".join(sorted(one.flags))


SHARING: Final = Chapter(
    name="shares",
    sources=("shares",),
    families=(SHARES, NORM, USAGE_NORM, USAGE_EFFECTIVE, FACTOR, LEVEL, USAGE, RUNNING),
    write=shares,
)
LICENSES: Final = Chapter(
    name="licenses",
    sources=("licenses",),
    families=(LICENSE, LICENSE_USED, LICENSE_FREE, LICENSE_RESERVED, LICENSE_DEFICIT),
    write=licenses,
)
RESERVATIONS: Final = Chapter(
    name="reservations",
    sources=("reservations",),
    families=(
        RESERVATION,
        RESERVATION_START,
        RESERVATION_END,
        RESERVATION_NODES,
        RESERVATION_CORES,
    ),
    write=reservations,
)
ACCOUNTING: Final = Chapter(
    name="accounting",
    sources=("accounting",),
    families=(QOS_LIMIT, ASSOC_LIMIT, DBD_RPCS, DBD_RPC_S, ROLLUP, ROLLUP_LAST),
    write=accounting,
)
USAGES: Final = Chapter(
    name="usage", sources=("jobs",), families=(QOS_USAGE, ASSOC_USAGE), write=usage
)
EFFICIENCY: Final = Chapter(
    name="efficiency",
    sources=("efficiency",),
    families=(CPU_EFFICIENCY, MEMORY_EFFICIENCY, WASTED_CPU, WASTED_MEMORY, NOT_MEASURED),
    write=efficiency,
)
