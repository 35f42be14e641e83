"""What the parts of the sandbox used, as figures beside the goals of this size. Pure."""

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.meter import SERVICES
from benchmarks.results import Usage
from benchmarks.scale.size import Size

PARTS = (*SERVICES, "slurmrestd", "slurmctld", "apiserver")
_GOAL_S = 40.0
"""The stretch for which the CPU seconds below are goals."""
_OURS_S, _SLURMCTLD_S = 2.0, 1.0
_SLURMRESTD_PERCENT = 10.0
_SERVICE_MIB = 300.0


def at_rest(what: str, usage: Usage, seconds: float) -> Iterator[Figure]:
    """Yield each part's share of a core while nothing happens, and its memory."""
    for part in PARTS:
        if part in usage.cpu_s:
            yield Figure(
                what=f"{what}: {part}",
                found=100 * usage.cpu_s[part] / seconds,
                unit="% of a core",
                words=f"{usage.memory_mib[part]:.0f} MiB",
            )


def of_strangers(usage: Usage, size: Size) -> Figure:
    """Judge what jobs of others cost slurmrestd, which nobody else asks here."""
    return Figure(
        what=f"slurmrestd, {size.strangers} jobs of strangers, none of ours",
        found=100 * usage.cpu_of("slurmrestd") / size.seconds,
        unit="% of a core",
        most=_SLURMRESTD_PERCENT,
    )


def of_waiting(usage: Usage, alone: Usage, size: Size) -> Iterator[Figure]:
    """Judge what waiting costs; `alone` is the same stretch while our services are stopped."""
    share = size.seconds / _GOAL_S
    yield Figure(
        what=f"{size.waiting} pods waiting {size.seconds:g} s: ours and slurmrestd",
        found=usage.cpu_of(*SERVICES, "slurmrestd"),
        unit="s of CPU",
        most=_OURS_S * share,
    )
    yield Figure(
        what="  slurmctld, more than without us",
        found=usage.cpu_of("slurmctld") - alone.cpu_of("slurmctld"),
        unit="s of CPU",
        most=_SLURMCTLD_S * share,
        words=f"{alone.cpu_of('slurmctld'):.2f} without",
    )
    for service in SERVICES:
        if service in usage.memory_mib:
            yield Figure(
                what=f"  memory of {service}",
                found=usage.memory_mib[service],
                unit="MiB",
                most=_SERVICE_MIB,
            )


def of_reading_anew(what: str, took_s: float, usage: Usage) -> Iterator[Figure]:
    """Yield what it cost until every job was classified again."""
    yield Figure(
        what=f"{what}: until all jobs are known again",
        found=took_s,
        unit="s",
        words=f"{usage.calls_of('Slurm', 'job.get')} job.get, {usage.calls_of('job.states')} lists",
    )
    yield Figure(
        what=f"{what}: CPU meanwhile",
        found=usage.cpu_of(*PARTS),
        unit="s",
        words=", ".join(f"{part} {usage.cpu_of(part):.1f}" for part in PARTS),
    )
