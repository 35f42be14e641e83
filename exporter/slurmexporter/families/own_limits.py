"""Own names: limits of QOS and associations, the usage that counts towards them, and slurmdbd's statistics."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from slurmclient.models import Association, Qos, Tres
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.picture import AccountingReading, Picture
from slurmexporter.readings.tres import MIB
from slurmexporter.text.budget import largest
from slurmexporter.text.family import Family, Metric, counter, gauge

_MINUTE_S: Final = 60
_US: Final = 1e-6

_OF_QOS: Final = ("qos", "limit", "tres")
QOS_LIMIT: Final = gauge(
    "slurm_qos_limit",
    "Limits of a QOS, named as in sacctmgr(1); memory in bytes, times in seconds.",
    *_OF_QOS,
)
QOS_USAGE: Final = gauge(
    "slurm_qos_usage",
    "Usage that counts towards the limits of a QOS, of all its jobs together.",
    *_OF_QOS,
)
ASSOC_LIMIT: Final = gauge(
    "slurm_assoc_limit",
    "Limits of an association, named as in sacctmgr(1); memory in bytes, times in seconds.",
    *("account", "user", "partition", "limit", "tres"),
)
ASSOC_USAGE: Final = gauge(
    "slurm_assoc_usage",
    "Usage that counts towards the limits of an association; with slurmdbd, including its children's.",
    *("account", "user", "limit", "tres"),
)
DBD_RPCS: Final = counter("slurm_dbd_rpcs_total", "RPCs served by slurmdbd.", "type")
DBD_RPC_S: Final = counter("slurm_dbd_rpc_seconds_total", "Time slurmdbd spent on RPCs.", "type")
ROLLUP: Final = gauge(
    "slurm_dbd_rollup_last_duration_seconds", "Duration of the last rollup.", "kind"
)
ROLLUP_LAST: Final = gauge(
    "slurm_dbd_rollup_last_timestamp_seconds", "When slurmdbd last rolled up usage.", "kind"
)


def accounting(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return limits of QOS and associations, and slurmdbd's statistics."""
    out, reading = MetricBuilder(), picture.accounting
    if reading is None:
        return out
    _limits(out, reading, limits)
    for rpc in reading.statistics.rpcs:
        out.add(DBD_RPCS, rpc.count, rpc.rpc)
        out.add(DBD_RPC_S, rpc.time.total * _US, rpc.rpc)
    rollups = reading.statistics.rollups
    for kind, rollup in (
        ("hourly", rollups.hourly),
        ("daily", rollups.daily),
        ("monthly", rollups.monthly),
    ):
        out.add(ROLLUP, rollup.duration.last * _US, kind)
        out.add(ROLLUP_LAST, rollup.last_run.timestamp() if rollup.last_run else 0, kind)
    return out


def usage(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return the usage that counts towards limits: jobs and resources by QOS, account and user.

    Nodes are left out: Slurm counts a node once for all of its jobs, which sums by group cannot show.
    """
    out = MetricBuilder()
    if picture.jobs is None:
        return out
    parents = _parents(picture.accounting)
    totals: dict[tuple[Family, tuple[str, ...]], dict[tuple[str, str], float]] = {}
    cells = [cell for cell in picture.jobs.cells if cell.holds or cell.is_pending]
    users: dict[str, float] = {}
    for cell in cells:
        users[cell.traits.user] = users.get(cell.traits.user, 0) + cell.tasks
    shown_users = largest(users, limits.top_users)
    for cell in cells:
        amounts: dict[tuple[str, str], float] = {("GrpSubmitJobs", ""): cell.tasks}
        if cell.holds:
            amounts |= {
                ("GrpJobs", ""): cell.tasks,
                ("GrpTRES", "cpu"): cell.cpus,
                ("GrpTRES", "mem"): cell.memory_bytes,
                ("GrpTRES", "gres/gpu"): cell.gpus,
            }
        traits = cell.traits
        groups: list[tuple[Family, tuple[str, ...]]] = [(QOS_USAGE, (traits.qos,))]
        groups += [
            (ASSOC_USAGE, (ancestor, "")) for ancestor in _with_parents(traits.account, parents)
        ]
        if traits.user in shown_users:
            groups.append((ASSOC_USAGE, (traits.account, traits.user)))
        for group in groups:
            sums = totals.setdefault(group, {})
            for what, amount in amounts.items():
                sums[what] = sums.get(what, 0) + amount
    for (family, who), sums in totals.items():
        for what, amount in sums.items():
            out.add(family, amount, *who, *what)
    return out


def _parents(reading: AccountingReading | None) -> Mapping[str, str]:
    associations = reading.associations if reading else ()
    return {a.account: a.parent_account for a in associations if not a.user}


def _with_parents(account: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield an account and all above it."""
    seen: set[str] = set()
    while account and account not in seen:
        yield account
        seen.add(account)
        account = parents.get(account, "")


def _limits(out: MetricBuilder, reading: AccountingReading, limits: Limits) -> None:
    for qos in reading.qos:
        for name, tres, value in _qos_limits(qos):
            out.add(QOS_LIMIT, value, qos.name, name, tres)
    users = {association.user: 1.0 for association in reading.associations if association.user}
    shown_users = largest(users, limits.top_users)
    for association in reading.associations:
        if association.user and association.user not in shown_users:
            continue
        for name, tres, value in _association_limits(association):
            who = association.account, association.user, association.partition
            out.add(ASSOC_LIMIT, value, *who, name, tres)


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


def _association_limits(association: Association) -> Iterator[tuple[str, str, float]]:
    most = association.max
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
        for amount in several:
            full = f"{amount.type}/{amount.name}" if amount.name else amount.type
            yield name, full, amount.count * (MIB if amount.type == "mem" else 1)


def _minutes(value: float | None) -> float | None:
    return None if value is None else value * _MINUTE_S


ACCOUNTING: Final = Chapter(
    name="accounting",
    sources=("accounting",),
    families=(QOS_LIMIT, ASSOC_LIMIT, DBD_RPCS, DBD_RPC_S, ROLLUP, ROLLUP_LAST),
    write=accounting,
)
USAGES: Final = Chapter(
    name="usage", sources=("jobs",), families=(QOS_USAGE, ASSOC_USAGE), write=usage
)
