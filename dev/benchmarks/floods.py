"""`python -m benchmarks.floods`: what one tenant's flood costs another tenant's pods.

Single pods of a quiet tenant are created one after the other, and timed from CREATE to their node:
with nothing else there, while a flood is created, and while it stands. The same flood in a namespace
that is not bridged shows how much of the delay is the API server's. In the middle of each flood the
extender and the controllers are restarted, so that their memory is that of a start with all of it.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.table import Table

from benchmarks import report
from benchmarks.load import Moment, Pods
from benchmarks.meter import SERVICES
from benchmarks.results import Spread
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient
from tests.soak.flood import KINDS

FLOODS: Mapping[str, int] = {
    "pods with a gate of others": 5000,
    "pods of 60 kB with a gate of others": 200,
    "pods that fit no node": 500,
    "gangs of fifty of which one pod exists": 500,
}
"""How many pods of each kind."""
MORE_S = 0.5
"""Goal: so much longer at most."""
LIMITS_MIB = {"webhook": 256, "extender": 1024, "controllers": 1024}
"""The chart's."""

_PATIENCE_S = 600.0
_REQUEST_TIMEOUT_S = 60.0
_PLAYED = {"run-seconds": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one flood did."""

    kind: str
    pods: int
    plain: Spread
    """The quiet tenant's pods, CREATE to bound, while the flood comes to a namespace of others."""
    coming: Spread
    """… while it comes to a bridged one."""
    standing: Spread
    """… while it stands there."""
    restarted: Spread
    """… after a restart of our leaders, with all of it there."""
    memory_mib: Mapping[str, float]
    """By service, after that restart."""


def main(
    *,
    probes: Annotated[int, typer.Option(help="Timed pods per stretch, at least.", min=1)] = 20,
    scale: Annotated[float, typer.Option(help="Size of the floods, compared with the goal's.")] = 1,
) -> None:
    """Measure floods on a sandbox of their own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    try:
        with (
            Sandbox.up(folder, Options(hurried=False)) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            try:
                runner.run(_measure(sandbox, probes, scale))
            except SandboxError as error:
                raise SandboxError(f"{error}\n{sandbox.log_tails()}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(sandbox: Sandbox, probes: int, scale: float) -> None:
    async with (
        KubeClient.open(
            str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
        ) as kube,
        Pods.watched(kube, "quiet", is_bridged=True) as quiet,
    ):
        bench = _Bench(sandbox=sandbox, kube=kube, quiet=quiet, probes=probes)
        await bench.timed("warm")
        alone = await bench.timed("alone")
        found = []
        for kind, pods in FLOODS.items():
            found.append(await bench.flooded(kind, max(1, round(scale * pods))))
            report.console().print(_table(alone, found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    sandbox: Sandbox
    kube: KubeClient
    quiet: Pods
    probes: int

    async def flooded(self, kind: str, count: int) -> Figures:
        name = f"flood-{list(FLOODS).index(kind)}"
        bodies = {f"{name}-{number}": KINDS[kind](f"{name}-{number}") for number in range(count)}
        async with Pods.watched(self.kube, f"{name}-plain", is_bridged=False) as flood:
            plain = await self._while(f"{name}-plain", flood, bodies)
        async with Pods.watched(self.kube, f"{name}-bridged", is_bridged=True) as flood:
            coming = await self._while(f"{name}-coming", flood, bodies)
            standing = await self.timed(f"{name}-standing")
            for service in ("extender", "controllers"):
                await asyncio.to_thread(self.sandbox.restart, service)
            await self.timed(f"{name}-again", 1)
            restarted = await self.timed(f"{name}-restarted")
            status = await asyncio.to_thread(self.sandbox.status)
        return Figures(
            kind=kind,
            pods=count,
            plain=plain,
            coming=coming,
            standing=standing,
            restarted=restarted,
            memory_mib={service: status[service].memory_mib for service in SERVICES},
        )

    async def _while(self, prefix: str, flood: Pods, bodies: Mapping[str, object]) -> Spread:
        """Time pods for as long as the flood is being created."""
        named: list[str] = []
        async with asyncio.TaskGroup() as group:
            coming = group.create_task(flood.create_as(bodies))
            while not coming.done() or not named:
                named.append(await self._one(f"{prefix}-{len(named)}"))
        return self.quiet.spread(Moment.SENT, Moment.BOUND, named)

    async def timed(self, prefix: str, count: int = 0) -> Spread:
        named = [await self._one(f"{prefix}-{number}") for number in range(count or self.probes)]
        return self.quiet.spread(Moment.SENT, Moment.BOUND, named)

    async def _one(self, name: str) -> str:
        named = await self.quiet.create(name, 1, played=_PLAYED)
        await self.quiet.reached(Moment.BOUND, named, _PATIENCE_S)
        return named[0]


def _table(alone: Spread, found: Sequence[Figures]) -> Table:
    table = Table("flood", title=f"another tenant's pod, s (alone: {_shown(alone)})")
    for title in ("comes elsewhere", "comes", "stands", "after a restart", "MiB", "goals"):
        table.add_column(title, justify="right")
    for each in found:
        stretches = (each.plain, each.coming, each.standing, each.restarted)
        memory = ", ".join(f"{mib:.0f}" for mib in each.memory_mib.values())
        table.add_row(
            f"{each.pods} {each.kind}", *map(_shown, stretches), memory, _judged(alone, each)
        )
    return table


def _shown(times: Spread) -> str:
    return f"{times.p50_s:.2f} / {times.longest_s:.2f}"


def _judged(alone: Spread, found: Figures) -> str:
    """Compare medians with the goals."""
    missed = {
        "comes": found.coming.p50_s > found.plain.p50_s + MORE_S,
        "stands": found.standing.p50_s > alone.p50_s + MORE_S,
        "memory": any(mib > LIMITS_MIB[name] for name, mib in found.memory_mib.items()),
    }
    return ", ".join(name for name, is_missed in missed.items() if is_missed) or "reached"


if __name__ == "__main__":
    typer.run(main)
