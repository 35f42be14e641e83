"""The latest readings of Slurm, of which all pages are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
from slurmexporter.jobtable.tally import Tally
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.job import Job
from slurmexporter.readings.node import PartitionView, SlurmNode
from slurmexporter.text.family import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsReading:
    """All jobs, grouped, and the counters of what has happened to them."""

    cells: Sequence[Cell]
    tally: Tally
    at_s: float
    """When the states were read, seconds since 1970."""
    unread: int = 0
    """Jobs that slurmctld has and that were not read yet."""
    reason_age_s: float = 0.0
    """How long ago the waiting job was read that was read longest ago."""
    single: Sequence[Job] = ()
    """The jobs that have a series of their own; none unless that is switched on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersReading:
    """Who answers."""

    controllers: Sequence[ControllerPing]
    databases: Sequence[DatabasePing]
    release: str
    cluster: str
    api: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingReading:
    """What slurmdbd knows."""

    associations: Sequence[Association]
    qos: Sequence[Qos]
    statistics: DatabaseStatistics


@dataclass(slots=True, kw_only=True)
class Efficiency:
    """How much of what they held jobs used that have ended; grows until the exporter restarts."""

    cpu: dict[str, Histogram] = field(default_factory=dict)
    memory: dict[str, Histogram] = field(default_factory=dict)
    wasted_cpu_s: dict[str, float] = field(default_factory=dict)
    wasted_memory_byte_s: dict[str, float] = field(default_factory=dict)
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The latest reading of each source; None if there is none that is fresh enough."""

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

    def readings(self) -> Mapping[str, object]:
        """Return the readings by the names of their sources."""
        return {name: getattr(self, name) for name in self.__slots__}
