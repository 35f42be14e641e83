"""The results of one run, as values.

Written to JSON, read back, flattened for tables and comparisons. Pure.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of a time over pods or calls, in seconds."""

    p50_s: float
    p99_s: float
    longest_s: float


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts of the sandbox used in a stretch of time."""

    cpu_s: Mapping[str, float]
    """By part; the kernel counts in hundredths of a second."""
    memory_mib: Mapping[str, float]
    """Resident at the end, by part."""
    calls: Mapping[str, int]
    """What our services counted: `extender → Slurm job.submit`, `kube-scheduler → filter` …"""

    def cpu_of(self, *parts: str) -> float:
        """Return the seconds of these parts together."""
        return sum(self.cpu_s.get(part, 0.0) for part in parts)

    def calls_of(self, *words: str) -> int:
        """Return the number of calls whose name contains all of these."""
        return sum(n for name, n in self.calls.items() if all(word in name for word in words))


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of a run."""

    pods: int
    wall_s: float
    """From its beginning to the moment it is named after."""
    usage: Usage
    spread: Spread | None = None
    """Over all pods; None if nothing happens to them."""
    first_s: float | None = None
    """From its beginning until that moment has come for the first pod; None if that was not recorded."""
    first_200_s: float | None = None
    """The same for the 200th, or for the last of fewer."""

    @property
    def per_s(self) -> float:
        """Return pods per second."""
        return self.pods / self.wall_s


class Micro(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, repeated alone."""

    count: int
    cpu_ms: float
    """CPU time of the process per operation."""
    spread: Spread | None = None
    per_s: float | None = None
    """Calls per second requested; None: as fast as possible."""
    memory_mib: float | None = None
    """Resident memory, if that is what was measured."""


class ApiWork(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server did for so many pods or requests."""

    count: int
    allocations: float
    cpu_s: float
    took_s: float


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of the measurement."""

    cores: int
    processor: str
    memory_gib: float
    python: str
    load_before: float
    """Load average of the last minute when the run began: above a few tenths, other work was
    running too.
    """


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured.

    Only runs of the same shape are comparable, except for the number of nodes, and for the column if one asks for it.
    """

    pods: int
    nodes: int
    waiting_s: float
    is_profiled: bool
    column: str = ""
    """A column of `benchmarks.columns`; empty in runs of older versions, which had the sandbox's own settings."""
    values: tuple[str, ...] = ()
    """Of the chart, in that column and at that time."""

    def is_like(self, other: "Shape", *, across_columns: bool = False) -> bool:
        """Check whether the figures of both are comparable."""
        same = msgspec.structs.replace(self, nodes=other.nodes)
        if across_columns:
            same = msgspec.structs.replace(same, column=other.column, values=other.values)
        return same == other


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """One pod that came after a while without any."""

    minutes: float
    bound_s: float
    """From its CREATE until it had a node."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    commit: str
    began_at: str
    """ISO 8601, UTC."""
    machine: Machine
    shape: Shape
    phases: Mapping[str, Phase]
    micro: Mapping[str, Micro]
    lives: Mapping[str, ApiWork] = {}
    """Whole lives, DELETE included, by way; empty in runs of older versions."""
    strangers: Mapping[str, tuple[ApiWork, ApiWork]] = {}
    """Writes of pods that are not ours: without our policies, and with them."""
    single: Spread | None = None
    """CREATE to bound of single pods on an idle cluster."""
    idle: Idle | None = None
    """The first pod after a rest; None if that was not asked for."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One figure in two runs."""

    name: str
    before: float
    now: float

    @property
    def percent(self) -> float | None:
        """Return the increase; None if there was nothing before."""
        return 100 * (self.now - self.before) / self.before if self.before else None


def spread(seconds: Sequence[float]) -> Spread:
    """Return the distribution of at least one measurement.

    Percentiles are measurements, not means of two.
    """
    ordered = sorted(seconds)

    def percentile(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return Spread(p50_s=percentile(0.5), p99_s=percentile(0.99), longest_s=ordered[-1])


def figures(run: Run) -> dict[str, float]:
    """Return every number of a run under a unique name."""
    found: dict[str, float] = {}
    for title, phase in run.phases.items():
        found[f"{title}: seconds"] = phase.wall_s
        found |= _spread_figures(title, phase.spread)
        if phase.first_s is not None:
            found[f"{title}: seconds to the first"] = phase.first_s
        found |= {f"{title}: CPU s {part}": n for part, n in phase.usage.cpu_s.items()}
        found |= {f"{title}: MiB {part}": n for part, n in phase.usage.memory_mib.items()}
        found |= {f"{title}: {name}": n for name, n in phase.usage.calls.items()}
    for title, micro in run.micro.items():
        found[f"{title}: CPU ms each"] = micro.cpu_ms
        found |= _spread_figures(title, micro.spread)
        if micro.memory_mib is not None:
            found[f"{title}: MiB"] = micro.memory_mib
    for title, work in run.lives.items():
        found[f"API server, {title}: allocations"] = work.allocations / work.count
    for title, (_, work) in run.strangers.items():
        found[f"not ours, {title}: allocations"] = work.allocations / work.count
    if run.idle:
        found["first pod after a rest: seconds"] = run.idle.bound_s
    return found | _spread_figures("single pods", run.single)


def compare(before: Run, now: Run, *, across_columns: bool = False) -> list[Change]:
    """Return every figure that both runs have.

    Raises:
        ValueError: they did not measure the same.
    """
    if not before.shape.is_like(now.shape, across_columns=across_columns):
        raise ValueError(f"the stored run measured {before.shape}, this one {now.shape}")
    old, new = figures(before), figures(now)
    return [Change(name=name, before=old[name], now=new[name]) for name in new if name in old]


def read(body: bytes) -> Run:
    """Read a stored run.

    Raises:
        ValueError: it is not a run, or one of another version of this program.
    """
    try:
        return msgspec.json.decode(body, type=Run)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a run of this version of the benchmarks: {error}") from error


def write(run: Run) -> bytes:
    """Return a run as JSON for people and `read`."""
    return msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n"


def _spread_figures(title: str, found: Spread | None) -> dict[str, float]:
    return (
        {f"{title}: {key}": n for key, n in msgspec.structs.asdict(found).items()} if found else {}
    )
