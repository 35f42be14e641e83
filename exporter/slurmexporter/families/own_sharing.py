"""Own names: fair-share, licenses, reservations, and the efficiency of ended jobs."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from slurmclient.models import Reservation
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.picture import Efficiency, Picture
from slurmexporter.text.budget import largest
from slurmexporter.text.family import Family, Metric, counter, gauge, histogram

_INFINITE64: Final = 2.0**64
_WHO: Final = ("account", "user", "partition")


def _share(name: str, words: str, *labels: str) -> Family:
    return gauge(
        f"slurm_share_{name}", f"{words} The label user is empty for accounts.", *_WHO, *labels
    )


SHARES: Final = _share("raw", "Shares of a user or account; NaN if inherited (parent).")
NORM: Final = _share("norm", "Shares as a fraction of all shares.")
USAGE_NORM: Final = _share("usage_norm", "Usage as a fraction of all usage.")
USAGE_EFFECTIVE: Final = _share(
    "usage_effective", "Effective usage, which includes that of the account's other users."
)
FACTOR: Final = _share("fairshare_factor", "Fair-share factor of the priority, from 0 to 1.")
LEVEL: Final = _share(
    "level", "Fair-share level among siblings: above 1 if underserved, +Inf without any usage."
)
USAGE: Final = _share(
    "usage_seconds",
    "Decayed usage of a trackable resource, in seconds; memory in MiB-seconds.",
    "tres",
)
RUNNING: Final = _share(
    "running_seconds",
    "Usage that running jobs may still add, in seconds; memory in MiB-seconds.",
    "tres",
)

LICENSE: Final = gauge("slurm_license_total", "Licenses in total.", "license")
LICENSE_USED: Final = gauge("slurm_license_used", "Licenses used by jobs.", "license")
LICENSE_FREE: Final = gauge("slurm_license_free", "Free licenses.", "license")
LICENSE_RESERVED: Final = gauge("slurm_license_reserved", "Reserved licenses.", "license")
LICENSE_DEFICIT: Final = gauge(
    "slurm_license_deficit",
    "Licenses missing from the cluster's share of a license server.",
    "license",
)


def _reservation(name: str, words: str, *labels: str) -> Family:
    return gauge(f"slurm_reservation_{name}", words, "reservation", *labels)


RESERVATION: Final = _reservation(
    "info", "A reservation; always 1.", "partition", "users", "accounts", "flags"
)
RESERVATION_START: Final = _reservation("start_timestamp_seconds", "When a reservation starts.")
RESERVATION_END: Final = _reservation("end_timestamp_seconds", "When a reservation ends.")
RESERVATION_NODES: Final = _reservation("nodes", "Nodes of a reservation.")
RESERVATION_CORES: Final = _reservation("cores", "Cores of a reservation.")

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
        for family, value in (
            (SHARES, share.shares),
            (NORM, share.shares_normalized),
            (USAGE_NORM, share.usage_normalized),
            (USAGE_EFFECTIVE, share.effective_usage),
            (FACTOR, share.fairshare.factor),
            (LEVEL, _level(share.fairshare.level)),
        ):
            if value is not None:
                out.add(family, value, *who)
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
        for family, value in (
            (LICENSE, item.total),
            (LICENSE_USED, item.used),
            (LICENSE_FREE, item.free),
            (LICENSE_RESERVED, item.reserved),
            (LICENSE_DEFICIT, item.last_deficit),
        ):
            out.add(family, value, item.license_name)
    return out


def reservations(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the reservations."""
    out = MetricBuilder()
    for reservation in picture.reservations or ():
        out.add(RESERVATION, 1, reservation.name, *_words(reservation))
        out.add(RESERVATION_START, _stamp(reservation.start_time), reservation.name)
        out.add(RESERVATION_END, _stamp(reservation.end_time), reservation.name)
        out.add(RESERVATION_NODES, reservation.node_count, reservation.name)
        out.add(RESERVATION_CORES, reservation.core_count, reservation.name)
    return out


def efficiency(picture: Picture, _: Limits) -> Iterator[Metric]:
    """Return how much of their allocations ended jobs used."""
    reading = picture.efficiency or Efficiency()
    yield CPU_EFFICIENCY, [((name,), histogram) for name, histogram in sorted(reading.cpu.items())]
    yield (
        MEMORY_EFFICIENCY,
        [((name,), histogram) for name, histogram in sorted(reading.memory.items())],
    )
    yield WASTED_CPU, [((name,), seconds) for name, seconds in sorted(reading.wasted_cpu_s.items())]
    yield (
        WASTED_MEMORY,
        [
            ((name,), byte_seconds)
            for name, byte_seconds in sorted(reading.wasted_memory_byte_s.items())
        ],
    )
    yield NOT_MEASURED, [((), reading.skipped)]


def _level(level: float | None) -> float | None:
    """Return a fair-share level; slurmrestd sends Slurm's infinity as the number 2^64."""
    return float("inf") if level is not None and level >= _INFINITE64 else level


def _stamp(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0


def _words(reservation: Reservation) -> tuple[str, str, str, str]:
    return (
        reservation.partition,
        reservation.users,
        reservation.accounts,
        ",".join(sorted(reservation.flags)),
    )


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
EFFICIENCY: Final = Chapter(
    name="efficiency",
    sources=("efficiency",),
    families=(CPU_EFFICIENCY, MEMORY_EFFICIENCY, WASTED_CPU, WASTED_MEMORY, NOT_MEASURED),
    write=efficiency,
)
