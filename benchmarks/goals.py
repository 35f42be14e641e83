"""The goals for the figures, for 2 cores with everything on one machine. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import apiserver, micro, scenarios
from benchmarks.meter import SERVICES
from benchmarks.results import Run

_PLAIN_TIMES = 2.5
_API_TIMES = 1.4
_SINGLE_P50_S, _SINGLE_LONGEST_S = 0.08, 0.2
_TAX_PERCENT, _STATUS_TAX_PERCENT = 5, 1
_MORE_NODES_TIMES = 1.2
_SLURM_CALLS_PER_POD = 4
_PYTHON_MS_PER_POD = 6
_WAITING_CPU_SHARE = 1 / 40
_FREED_S = 3
_WEBHOOK_P99_MS = 10
_SERVICE_MIB = 150
_CACHES_MIB = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure and its limit."""

    name: str
    found: float
    limit: float
    unit: str
    is_exact: bool = False
    """True if less is as bad as more."""

    @property
    def is_reached(self) -> bool:
        """Check whether the figure is at most the limit, or exactly it."""
        return self.found == self.limit if self.is_exact else self.found <= self.limit


def goals(run: Run, before: Run | None = None) -> Iterator[Goal]:
    """Yield every goal with the figure found; one on fewer nodes shows what the nodes cost."""
    plain, bound = run.phases[scenarios.PLAIN], run.phases[scenarios.BOUND]
    life, waiting, freed = (
        run.phases[name] for name in (scenarios.LIFE, scenarios.WAITING, scenarios.FREED)
    )
    yield Goal(
        name="all bound ÷ kube-scheduler alone",
        found=bound.wall_s / plain.wall_s,
        limit=_PLAIN_TIMES,
        unit="",
    )
    if before and before.shape.nodes < run.shape.nodes:
        yield Goal(
            name=f"all bound, {run.shape.nodes} nodes instead of {before.shape.nodes}",
            found=bound.wall_s,
            limit=_MORE_NODES_TIMES * before.phases[scenarios.BOUND].wall_s,
            unit="s",
        )
    yield Goal(
        name="filter calls per pod",
        found=bound.usage.calls_of("filter") / bound.pods,
        limit=1,
        unit="",
        is_exact=True,
    )
    yield Goal(
        name="filter calls while waiting", found=waiting.usage.calls_of("filter"), limit=0, unit=""
    )
    yield Goal(
        name="Slurm calls per pod, CREATE to bound",
        found=bound.usage.calls_of("Slurm") / bound.pods,
        limit=_SLURM_CALLS_PER_POD,
        unit="",
    )
    yield Goal(
        name="our CPU per pod, whole life",
        found=1000 * life.usage.cpu_of(*SERVICES) / life.pods,
        limit=_PYTHON_MS_PER_POD,
        unit="ms",
    )
    yield Goal(
        name=f"CPU of ours and slurmrestd in {waiting.wall_s:g} s of waiting",
        found=waiting.usage.cpu_of(*SERVICES, "slurmrestd"),
        limit=_WAITING_CPU_SHARE * waiting.wall_s,
        unit="s",
    )
    yield Goal(name="freed to all bound", found=freed.wall_s, limit=_FREED_S, unit="s")
    for service in SERVICES:
        yield Goal(
            name=f"memory of {service}",
            found=max(phase.usage.memory_mib[service] for phase in run.phases.values()),
            limit=_SERVICE_MIB,
            unit="MiB",
        )
    yield from _micro_goals(run)
    yield from _api_goals(run)
    if run.single:
        for name, found, limit in (
            ("p50", run.single.p50_s, _SINGLE_P50_S),
            ("longest", run.single.longest_s, _SINGLE_LONGEST_S),
        ):
            yield Goal(name=f"single pods, {name}", found=found, limit=limit, unit="s")


def _api_goals(run: Run) -> Iterator[Goal]:
    """Compare allocations: CPU time, which follows them, is in the table."""
    if run.lives:
        ours, plain = run.lives[apiserver.BRIDGED], run.lives[apiserver.PLAIN]
        yield Goal(
            name="API server, whole life ÷ plain's",
            found=ours.allocations / plain.allocations,
            limit=_API_TIMES,
            unit="",
        )
    if run.strangers:
        status = [work.allocations for work in run.strangers[apiserver.STATUS]]
        yield _tax("whole life", *apiserver.whole(run.strangers), limit=_TAX_PERCENT)
        yield _tax("a status", *status, limit=_STATUS_TAX_PERCENT)


def _tax(what: str, without: float, now: float, *, limit: float) -> Goal:
    found = 100 * (now / without - 1)
    return Goal(name=f"pods not ours, {what}: more", found=found, limit=limit, unit="%")


def _micro_goals(run: Run) -> Iterator[Goal]:
    webhook, caches = run.micro[micro.WEBHOOK], run.micro[micro.CACHES]
    if webhook.spread:
        yield Goal(
            name=f"webhook at {webhook.per_s:g}/s, p99",
            found=1000 * webhook.spread.p99_s,
            limit=_WEBHOOK_P99_MS,
            unit="ms",
        )
    if caches.memory_mib:
        yield Goal(
            name=f"caches of {caches.count} pods",
            found=caches.memory_mib,
            limit=_CACHES_MIB,
            unit="MiB",
        )
