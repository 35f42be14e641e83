"""`python -m tests.soak.hostile`: honest pods beside hostile tenants, connections, Slurm users, and in the end a hostile Slurm.

The honest come alone first, so that it can be said what the others cost them. Poison, floods, odd connections and odd jobs
are those of the tests; all of it goes to addresses of this machine. Writes its section of docs/reliability.md, prints every
goal, and ends with 1 if one is missed. Needs root, for the slurmd of SlurmJobs.
"""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import msgspec
import typer
import uvloop

from benchmarks.load import Pods
from benchmarks.results import Spread
from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from tests.fault_bench import FaultBench, fault_bench
from tests.servers import fresh_namespace, running_sandbox
from tests.soak import report, slurm_jobs
from tests.soak.field import Field
from tests.soak.flood import Flood
from tests.soak.hostile import figures, page, samples, slurm_users
from tests.soak.hostile.crowd import Crowd
from tests.soak.hostile.exporting import exporter
from tests.soak.hostile.figures import ALONE, BESIDE, WRONG, Stretch
from tests.soak.hostile.grounds import Site, invite
from tests.soak.hostile.honest import Honest, Plain
from tests.soak.hostile.wrong_slurm import WrongSlurm
from tests.soak.poison import Poison

_OPTIONS = Options(
    accounting=True,
    nodes=8,
    node_cpus=128,
    node_gpus=0,
    compute=1,
    settings=(f"policy.rules={slurm_jobs.RULES}",),
    lease_s=15,
)
_HONEST, _PLAIN = "honest", "plain"
"""Namespaces."""
_WRONG_PEERS = ("slurmrestd", "slurmctld")
"""What lies behind proxies. The API server does not: all that our services hear of it would pass through one Python process."""
_ALONE_SHARE, _WRONG_SHARE = 1 / 6, 1 / 6
_ALONE_S, _WRONG_S = (30.0, 300.0), (30.0, 600.0)
_WARMS_UP_S = 10.0
_ODD_S = 5.0
_SAY_EVERY_S = 10.0
_SETTLES_WITHIN_S = 600.0
_CLEARED_WITHIN_S = 300.0
_REQUEST_TIMEOUT_S = 60.0
_FAILURES = (AssertionError, ApiError, SandboxError, subprocess.TimeoutExpired, UnicodeDecodeError)
"""What may be raised by whoever looks at both worlds; after an hour it must not cost all that was measured."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    *,
    minutes: Annotated[float, typer.Option(help="Length of the run, without its end.")] = 60,
    rate: Annotated[float, typer.Option(help="Honest pods a second.")] = 5,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
) -> None:
    """Find out what the hostile cost the honest."""
    with (
        running_sandbox(_OPTIONS) as sandbox,
        fault_bench(sandbox, _WRONG_PEERS) as bench,
        fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as mallorys,
        fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as odd,
        exporter(sandbox) as exported,
    ):
        invite(sandbox, mallorys)
        run = _Run(bench, mallorys, odd, exported, minutes=minutes, rate=rate, seed=seed)
        idle = sandbox.instance.root / "idle"
        with run.crowd_gathered(), run.sampler.sampling(), samples.idle_process(idle):
            uvloop.run(run.live())
        _keep_logs(sandbox)
        outcome = run.outcome(idle_s=float((idle.read_text().split() or ["0"])[-1]))
    report.keep("hostile", outcome)
    for line in page.summary(outcome):
        typer.echo(line)
    typer.echo(f"all figures: {report.KEPT / 'hostile.json'}; logs: {report.KEPT / 'hostile-log'}")
    raise typer.Exit(any(not goal["is_reached"] for goal in outcome["goals"]))


@dataclass(slots=True)
class _Times:
    """When pods left, and when they got their node; monotonic."""

    sent: Mapping[str, float] = field(default_factory=dict)
    bound: Mapping[str, float] = field(default_factory=dict)


class _Run:
    def __init__(
        self,
        bench: FaultBench,
        mallorys: str,
        odd: str,
        exported: samples.Program,
        *,
        minutes: float,
        rate: float,
        seed: int,
    ) -> None:
        self._bench, self._sandbox = bench, bench.sandbox
        self._mallorys, self._exported = mallorys, exported
        self._minutes, self._rate, self._seed = minutes, rate, seed
        self._programs = samples.programs(self._sandbox, exported)
        self.sampler = samples.Sampler(self._sandbox, self._programs)
        self._poison = Poison(self._sandbox, odd)
        self._unpoisoned = ""
        self._crowd = Crowd()
        self._wrong = WrongSlurm(bench, random.Random(seed))  # noqa: S311  # seeded: the same draws come again
        self._stretches: list[Stretch] = []
        self._times: dict[str, _Times] = {}
        self._breaches: list[str] = []
        self._loads: list[float] = []
        self._most_alive = self._held_back = 0

    def crowd_gathered(self) -> AbstractContextManager[None]:
        """The hostile, ready to begin."""
        root, exported = self._sandbox.instance.root, self._exported.url
        site = Site(root=root, namespace=self._mallorys, exporter=exported, seed=self._seed)
        return self._crowd.gathered(site)

    async def live(self) -> None:
        """Let it all happen, calm down, and compare both worlds."""
        async with (
            _opened(self._sandbox) as (kube, honest_pods, plain_pods),
            Field.on(self._sandbox, _HONEST) as fields,
        ):
            honest, plain = Honest(fields, honest_pods), Plain(kube, plain_pods, _PLAIN)
            over = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(fields.tend(over))
                group.create_task(self._say(fields, over))
                await honest.settle_in()
                await self._stretch(honest, plain, "warm", _WARMS_UP_S)
                await self._stretch(honest, plain, ALONE, self._alone_s)
                await self._beside(honest, plain)
                over.set()
            self._bench.calm()
            typer.echo("calm; both worlds are compared")
            await fields.settle(_SETTLES_WITHIN_S)
            self._times = {
                page.HONEST: _Times(honest.sent, await honest.bound()),
                page.ANSWERED: _Times(honest.sent, honest.answered),
                page.PLAIN: _Times(plain.sent, await plain.bound()),
            }
            await fields.clear(_SETTLES_WITHIN_S)
            self._held_back = honest.held_back
            await self._look(fields)
            self._breaches += fields.tally.breaches

    async def _look(self, fields: Field) -> None:
        """Look for what is broken or left, once all is calm."""
        try:
            await asyncio.to_thread(slurm_users.cancel_all, self._sandbox)
            typer.echo("sacct is asked for every pod that ended")
            await fields.audit()
            typer.echo("odd objects are looked at, which may take some minutes")
            self._breaches += await asyncio.to_thread(self._left)
        except _FAILURES as error:
            self._breaches.append(f"no look at both worlds: {_words(error)}")

    async def _beside(self, honest: Honest, plain: Plain) -> None:
        async with asyncio.TaskGroup() as group:
            put = group.create_task(asyncio.to_thread(self._put_poison))
            while not put.done():  # while it is calm: later they might find no place in time
                await self._stretch(honest, plain, "odd objects come", _ODD_S)
            self._crowd.begin()
            await self._stretch(honest, plain, BESIDE, self._beside_s)
            stop = asyncio.Event()
            storm = group.create_task(self._wrong.go_on(stop))
            await self._stretch(honest, plain, WRONG, self._wrong_s)
            stop.set()
            await storm
            await asyncio.to_thread(self._crowd.end)

    async def _stretch(self, honest: Honest, plain: Plain, name: str, lasts_s: float) -> None:
        typer.echo(f"{name}: {lasts_s:.0f} s")
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(plain.come(began_s + lasts_s))
            await honest.come(self._rate, began_s + lasts_s, group)
        self._stretches.append(Stretch(name, began_s, time.monotonic()))

    @property
    def _alone_s(self) -> float:
        return _within(_ALONE_S, 60 * self._minutes * _ALONE_SHARE)

    @property
    def _wrong_s(self) -> float:
        return _within(_WRONG_S, 60 * self._minutes * _WRONG_SHARE)

    @property
    def _beside_s(self) -> float:
        return max(30.0, 60 * self._minutes - self._alone_s - self._wrong_s)

    async def _say(self, fields: Field, over: asyncio.Event) -> None:
        began_s = time.monotonic()
        while not over.is_set():
            self._most_alive = max(self._most_alive, len(fields.tracked))
            self._loads.append(os.getloadavg()[0])
            failures = sum(bool(burst.failure) for burst in self._crowd.bursts())
            typer.echo(
                f"{time.monotonic() - began_s:5.0f} s: {fields.tally.created} honest pods, {len(fields.tracked)} alive,"
                f" {len(self._crowd.bursts())} attacks ({failures} failed), {len(self._wrong.story)} wrong answers,"
                f" load {self._loads[-1]:.1f}, {len(fields.tally.breaches)} breaches"
            )
            try:
                await asyncio.wait_for(over.wait(), _SAY_EVERY_S)
            except TimeoutError:
                continue

    def _put_poison(self) -> None:
        """What cannot be put is no reason to end the run."""
        try:
            self._poison.put()
        except _FAILURES as error:
            self._unpoisoned = f"odd objects could not be put: {_words(error)}"

    def _left(self) -> Sequence[str]:
        flood = Flood(self._sandbox, self._mallorys)
        odd = [self._unpoisoned] if self._unpoisoned else self._poison.breaches()
        return [*flood.breaches(_CLEARED_WITHIN_S), *odd]

    def outcome(self, *, idle_s: float) -> dict[str, Any]:
        """Return all that is kept and reported."""
        stretches = [one for one in self._stretches if one.name in (ALONE, BESIDE, WRONG)]
        accounts = [
            figures.account(p.name, p.limit_mib, self.sampler.readings[p.name], stretches)
            for p in self._programs
        ]
        honest = self._times[page.HONEST]
        spreads = {s.name: figures.times(honest.sent, honest.bound, s) for s in stretches}
        goals = list(
            figures.goals(
                _some(spreads[ALONE][0]),
                _some(spreads[BESIDE][0]),
                accounts,
                unbound=sum(unbound for _, unbound in spreads.values()),
                held_back=self._held_back,
                breaches=len(self._breaches),
            )
        )
        bursts, began_s = self._crowd.bursts(), stretches[1].began_s
        attacks = figures.attacks(bursts, honest.sent, honest.bound)
        return {
            **report.about(self._seed),
            "minutes": self._minutes,
            "rate": self._rate,
            "cores": os.cpu_count(),
            "load": statistics.median(self._loads),
            "idle_s": idle_s,
            "most_alive": self._most_alive,
            "held_back": self._held_back,
            "goals": [{**asdict(goal), "is_reached": goal.is_reached} for goal in goals],
            "times": [self._row(who, stretch) for who in self._times for stretch in stretches],
            "accounts": [asdict(one) for one in accounts],
            "attacks": [asdict(attack) for attack in attacks],
            "suspects": [
                (one.name, figures.suspects(self.sampler.readings[one.name], bursts, began_s))
                for one in accounts
                if one.stand_s is not None
            ],
            "wrong": Counter(self._wrong.story).most_common(),
            "poison": list(self._poison.kinds),
            "breaches": self._breaches,
        }

    def _row(self, who: str, stretch: Stretch) -> tuple[str, str, int, object]:
        of_them = self._times[who]
        spread, unbound = figures.times(of_them.sent, of_them.bound, stretch)
        pods = sum(stretch.has(moment) for moment in of_them.sent.values())
        return who, stretch.name, pods - unbound, msgspec.to_builtins(spread)


def _keep_logs(sandbox: Sandbox) -> None:
    """Whoever asks why a program was restarted finds its last words after the sandbox is gone."""
    shutil.copytree(sandbox.instance.logs, report.KEPT / "hostile-log", dirs_exist_ok=True)


def _words(error: Exception) -> str:
    """Return what it is, without the logs that may follow."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"


def _within(bounds: tuple[float, float], value: float) -> float:
    return min(max(value, bounds[0]), bounds[1])


def _some(spread: Spread | None) -> Spread:
    if spread is None:
        raise ValueError("no honest pod got a node")
    return spread


@asynccontextmanager
async def _opened(sandbox: Sandbox) -> AsyncIterator[tuple[KubeClient, Pods, Pods]]:
    async with (
        KubeClient.open(
            str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="soak"
        ) as kube,
        Pods.watched(kube, _HONEST, is_bridged=True, are_left=True) as honest,
        Pods.watched(kube, _PLAIN, is_bridged=False, are_left=True) as plain,
    ):
        yield kube, honest, plain


if __name__ == "__main__":
    app()
