"""The latest readings of Slurm, from which all pages are rendered."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from slurmclient.models import (
    Association,
    ControllerPing,
    DatabasePing,
    DatabaseStatistics,
    License,
    Qos,
    Reservation,
    Share,
    Statistics,
)
from slurmexporter.jobtable.tally import RATIO_BOUNDS, Tally
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.job import Job
from slurmexporter.readings.node import PartitionView, SlurmNode
from slurmexporter.text.family import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsReading:
    """All jobs, grouped, and the counters of their events."""

    cells: Sequence[Cell]
    tally: Tally
    at_s: float
    """When the states were read, seconds since 1970."""
    unread: int = 0
    reason_age_s: float = 0.0
    """Age of the stalest reading of a pending job."""
    single: Sequence[Job] = ()
    """The jobs with series of their own; none unless enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersReading:
    """Which controllers and databases respond."""

    controllers: Sequence[ControllerPing]
    databases: Sequence[DatabasePing]
    release: str
    cluster: str
    api: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingReading:
    """Limits and statistics from slurmdbd."""

    associations: Sequence[Association]
    qos: Sequence[Qos]
    statistics: DatabaseStatistics


def _ratios() -> dict[str, Histogram]:
    return defaultdict(partial(Histogram.of, RATIO_BOUNDS))


@dataclass(slots=True, kw_only=True)
class Efficiency:
    """How much of their allocations ended jobs used; grows until the exporter restarts."""

    cpu: dict[str, Histogram] = field(default_factory=_ratios)
    memory: dict[str, Histogram] = field(default_factory=_ratios)
    wasted_cpu_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wasted_memory_byte_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The latest reading of each source; None without a fresh one."""

    jobs: JobsReading | None = None
    nodes: Sequence[SlurmNode] | None = None
    partitions: Sequence[PartitionView] | None = None
    scheduler: Statistics | None = None
    controllers: ControllersReading | None = None
    licenses: Sequence[License] | None = None
    reservations: Sequence[Reservation] | None = None
    shares: Sequence[Share] | None = None
    accounting: AccountingReading | None = None
    efficiency: Efficiency | None = None
