"""Own names: fair-share, licenses, reservations, and the efficiency of ended jobs."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from slurmclient.models import License, Reservation, Share
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.figures import FigureSet, one
from slurmexporter.families.picture import Efficiency, Picture
from slurmexporter.text.budget import largest
from slurmexporter.text.family import Metric, by_name, counter, gauge, histogram

_INFINITE64: Final = 2.0**64
_WHO: Final = ("account", "user", "partition")


_ACCOUNTS: Final = " The label user is empty for accounts."


def _level(share: Share) -> float | None:
    """Return a fair-share level; slurmrestd sends Slurm's infinity as the number 2^64."""
    level = share.fairshare.level
    return float("inf") if level is not None and level >= _INFINITE64 else level


SHARE: Final[FigureSet[Share]] = FigureSet(
    "slurm_share",
    {
        "raw": one(
            "Shares of a user or account; NaN if inherited (parent)", lambda share: share.shares
        ),
        "norm": one("Shares as a fraction of all shares", lambda share: share.shares_normalized),
        "usage_norm": one("Usage as a fraction of all usage", lambda share: share.usage_normalized),
        "usage_effective": one(
            "Effective usage, which includes that of the account's other users",
            lambda share: share.effective_usage,
        ),
        "fairshare_factor": one(
            "Fair-share factor of the priority, from 0 to 1", lambda share: share.fairshare.factor
        ),
        "level": one(
            "Fair-share level among siblings: above 1 if underserved, +Inf without any usage",
            _level,
        ),
    },
    *_WHO,
    ends=f".{_ACCOUNTS}",
)
USAGE: Final = gauge(
    "slurm_share_usage_seconds",
    f"Decayed usage of a trackable resource, in seconds; memory in MiB-seconds.{_ACCOUNTS}",
    *_WHO,
    "tres",
)
RUNNING: Final = gauge(
    "slurm_share_running_seconds",
    f"Usage that running jobs may still add, in seconds; memory in MiB-seconds.{_ACCOUNTS}",
    *_WHO,
    "tres",
)

LICENSE: Final[FigureSet[License]] = FigureSet(
    "slurm_license",
    {
        "total": one("Licenses in total", lambda item: item.total),
        "used": one("Licenses used by jobs", lambda item: item.used),
        "free": one("Free licenses", lambda item: item.free),
        "reserved": one("Reserved licenses", lambda item: item.reserved),
        "deficit": one(
            "Licenses missing from the cluster's share of a license server",
            lambda item: item.last_deficit,
        ),
    },
    "license",
)

RESERVATION: Final = gauge(
    "slurm_reservation_info",
    "A reservation; always 1.",
    *("reservation", "partition", "users", "accounts", "flags"),
)
RESERVATION_FIGURES: Final[FigureSet[Reservation]] = FigureSet(
    "slurm_reservation",
    {
        "start_timestamp_seconds": one(
            "When a reservation starts", lambda reservation: _stamp(reservation.start_time)
        ),
        "end_timestamp_seconds": one(
            "When a reservation ends", lambda reservation: _stamp(reservation.end_time)
        ),
        "nodes": one("Nodes of a reservation", lambda reservation: reservation.node_count),
        "cores": one("Cores of a reservation", lambda reservation: reservation.core_count),
    },
    "reservation",
)

CPU_EFFICIENCY: Final = histogram(
    "slurm_job_cpu_efficiency_ratio",
    "CPU time used by ended jobs, as a fraction of their allocated CPU time. Needs --efficiency.",
    "partition",
)
MEMORY_EFFICIENCY: Final = histogram(
    "slurm_job_memory_efficiency_ratio",
    "Peak memory of ended jobs, as a fraction of their allocated memory. Needs --efficiency.",
    "partition",
)
WASTED_CPU: Final = counter(
    "slurm_wasted_cpu_seconds_total",
    "CPU time allocated to ended jobs but not used. Needs --efficiency.",
    "account",
)
WASTED_MEMORY: Final = counter(
    "slurm_wasted_memory_byte_seconds_total",
    "Memory allocated to ended jobs but never used, times their run time. Needs --efficiency.",
    "account",
)
NOT_MEASURED: Final = counter(
    "slurm_exporter_efficiency_skipped_total",
    "Ended jobs whose efficiency was not read: no steps, no record, or too many at once.",
)


def shares(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return the fair-share tree: all accounts, and the users with the most usage."""
    out, all_shares = MetricBuilder(), picture.shares or ()
    shown_users = largest(
        {share.name: share.usage for share in all_shares if "USER" in share.type}, limits.top_users
    )
    for share in all_shares:
        is_user = "USER" in share.type
        if is_user and share.name not in shown_users:
            continue
        who = (share.parent, share.name, share.partition) if is_user else (share.name, "", "")
        SHARE.add(out, [share], *who)
        for usage in share.tres.usage:
            if usage.value:
                out.add(USAGE, usage.value, *who, usage.name)
        for running in share.tres.run_seconds:
            if running.value:
                out.add(RUNNING, running.value, *who, running.name)
    return out


def licenses(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the licenses."""
    out = MetricBuilder()
    for item in picture.licenses or ():
        LICENSE.add(out, [item], item.license_name)
    return out


def reservations(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the reservations."""
    out = MetricBuilder()
    for reservation in picture.reservations or ():
        flags = ",".join(sorted(reservation.flags))
        whose = reservation.partition, reservation.users, reservation.accounts
        out.add(RESERVATION, 1, reservation.name, *whose, flags)
        RESERVATION_FIGURES.add(out, [reservation], reservation.name)
    return out


def efficiency(picture: Picture, _: Limits) -> Iterator[Metric]:
    """Return how much of their allocations ended jobs used."""
    reading = picture.efficiency or Efficiency()
    yield CPU_EFFICIENCY, by_name(reading.cpu)
    yield MEMORY_EFFICIENCY, by_name(reading.memory)
    yield WASTED_CPU, by_name(reading.wasted_cpu_s)
    yield WASTED_MEMORY, by_name(reading.wasted_memory_byte_s)
    yield NOT_MEASURED, [((), reading.skipped)]


def _stamp(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0


SHARING: Final = Chapter(
    name="shares",
    sources=("shares",),
    families=(*SHARE.families, USAGE, RUNNING),
    write=shares,
)
LICENSES: Final = Chapter(
    name="licenses",
    sources=("licenses",),
    families=LICENSE.families,
    write=licenses,
)
RESERVATIONS: Final = Chapter(
    name="reservations",
    sources=("reservations",),
    families=(RESERVATION, *RESERVATION_FIGURES.families),
    write=reservations,
)
EFFICIENCY: Final = Chapter(
    name="efficiency",
    sources=("efficiency",),
    families=(CPU_EFFICIENCY, MEMORY_EFFICIENCY, WASTED_CPU, WASTED_MEMORY, NOT_MEASURED),
    write=efficiency,
)
