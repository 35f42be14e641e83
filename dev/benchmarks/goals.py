"""The goals for the figures, for 2 cores with everything on one machine. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from benchmarks import apiserver, columns, micro, scenarios
from benchmarks.meter import SERVICES
from benchmarks.results import Phase, Run, Shape

_PLAIN_TIMES = 2.5
_API_TIMES = 1.4
_SINGLE_P50_S, _SINGLE_LONGEST_S = 0.08, 0.2
_AFTER_REST_S = 0.2
_TAX_PERCENT, _WRITE_TAX_PERCENT = 5, 1
FEW_NODES = 100
_FEW_PODS = 200
_MORE_NODES_TIMES = 1.1
_SLURM_CALLS_PER_POD = 4
_FEW_PODS_MS, _MANY_PODS_MS = 6, 8
_WAITING_CPU_SHARE = 1 / 40
_FIRST_FREED_S = 0.15
_FEW_NODES_FREED_S, _MANY_NODES_FREED_S = 2.2, 3
_WEBHOOK_P99_MS = 10
_SERVICE_MIB = 300
"""Of each service with 10 000 pods that wait and 5000 that run, so of any smaller run, too."""


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
        limit=1 if columns.filters(run.shape.values) else 0,
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
        limit=_FEW_PODS_MS if run.shape.pods <= _FEW_PODS else _MANY_PODS_MS,
        unit="ms",
    )
    yield Goal(
        name=f"CPU of ours and slurmrestd in {waiting.wall_s:g} s of waiting",
        found=waiting.usage.cpu_of(*SERVICES, "slurmrestd"),
        limit=_WAITING_CPU_SHARE * waiting.wall_s,
        unit="s",
    )
    yield from _freed_goals(run.shape, freed)
    yield from _memory_goals(run.phases.values())
    if run.micro:
        yield from _micro_goals(run)
    yield from _api_goals(run)
    if run.single:
        for name, found, limit in (
            ("p50", run.single.p50_s, _SINGLE_P50_S),
            ("longest", run.single.longest_s, _SINGLE_LONGEST_S),
        ):
            yield Goal(name=f"single pods, {name}", found=found, limit=limit, unit="s")
    if run.idle:
        yield Goal(
            name=f"first pod after {run.idle.minutes:g} minutes without any",
            found=run.idle.bound_s,
            limit=_AFTER_REST_S,
            unit="s",
        )


def _freed_goals(shape: Shape, freed: Phase) -> Iterator[Goal]:
    if freed.first_s is not None:
        yield Goal(name="freed to first bound", found=freed.first_s, limit=_FIRST_FREED_S, unit="s")
    many = min(scenarios.MANY_FREED, freed.pods)
    yield Goal(
        name=f"freed to {many} bound",
        found=freed.wall_s if freed.first_200_s is None else freed.first_200_s,
        limit=_FEW_NODES_FREED_S if shape.nodes <= FEW_NODES else _MANY_NODES_FREED_S,
        unit="s",
    )


def _memory_goals(phases: Collection[Phase]) -> Iterator[Goal]:
    """Look at the services that run: two of them may be one process."""
    for service in SERVICES:
        seen = [held for phase in phases if (held := phase.usage.memory_mib.get(service))]
        if seen:
            name = f"memory of {service}"
            yield Goal(name=name, found=max(seen), limit=_SERVICE_MIB, unit="MiB")


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
        for what, limit in (
            (apiserver.LIFE, _TAX_PERCENT),
            (apiserver.UPDATE, _WRITE_TAX_PERCENT),
            (apiserver.STATUS, _WRITE_TAX_PERCENT),
        ):
            without, now = run.strangers[what]
            yield _tax(what, without.allocations, now.allocations, limit=limit)


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
            limit=_SERVICE_MIB,
            unit="MiB",
        )
