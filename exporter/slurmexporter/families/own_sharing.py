"""Own names: what is shared: fair-share, licenses, reservations; and how well it was used."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from slurmclient.models import Reservation
from slurmexporter.families.chapter import Chapter, Limits, Written
from slurmexporter.families.picture import Efficiency, Picture
from slurmexporter.text.budget import largest
from slurmexporter.text.family import Family, Metric

_INFINITE64: Final = 2.0**64
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
LEVEL: Final = _share(
    "level", "Fair-share among siblings: above 1 if underserved, +Inf without any usage."
)
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
            (LEVEL, _level(one.fairshare.level)),
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


def _level(level: float | None) -> float | None:
    """Return a fair-share level; slurmrestd sends Slurm's infinity as the number 2^64."""
    return float("inf") if level is not None and level >= _INFINITE64 else level


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
EFFICIENCY: Final = Chapter(
    name="efficiency",
    sources=("efficiency",),
    families=(CPU_EFFICIENCY, MEMORY_EFFICIENCY, WASTED_CPU, WASTED_MEMORY, NOT_MEASURED),
    write=efficiency,
)
