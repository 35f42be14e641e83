"""`make bench-scale`: very many pods, nodes and jobs of strangers, on a sandbox of its own.

Nodes and kubelets are KWOK's, Slurm and the API server are real. Measured are: what everything costs at rest; how soon
a `scancel` is acted upon; and what it takes to know all jobs again for a new leader, after slurmctld's restart, and when
slurmctld resets its counters, as at each midnight UTC.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from benchmarks import columns, figures
from benchmarks.figures import Figure
from benchmarks.load import Moment, Pods
from benchmarks.meter import SERVICES, Meter, Reading, between
from benchmarks.results import Usage
from benchmarks.scale import costs
from benchmarks.scale.size import CONF, Size
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmclient import Client, TokenFile
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names

_USUAL = Size()
_AT_ONCE = 8
_POLL_S = 1.5
_CALM_READINGS = 8
"""Twelve seconds: our services may rest for ten between two readings."""
_CALM_GETS_PER_S = 25.0
"""Fewer `job.get` a second than this are the reasons of waiting jobs and the limits of running ones."""
_CANCELS = 5
_ACTED_S, _FIRST_S = 2.0, 0.15
_TIMEOUT_S = 300.0
_START_S = 60.0


class _Bench:
    """One sandbox, filled step by step."""

    def __init__(
        self, sandbox: Sandbox, kube: KubeClient, slurm: Client, size: Size, report: Console
    ) -> None:
        self._sandbox = sandbox
        self._kube = kube
        self._slurm = slurm
        self._size = size
        self._report = report
        self._meter = Meter(sandbox)
        self._victims: Iterator[str] = iter(())
        """Names of waiting pods."""
        self.figures: list[Figure] = []

    async def run(self) -> None:
        """Fill and measure, in the order in which figures become available."""
        size = self._size
        await self._timed(f"{size.nodes} nodes registered", self._registered())
        await self._timed(f"{size.strangers} jobs of strangers submitted", self._strange())
        await self._timed("all of them known", self._calm())
        usage = await self._at_rest("strangers only")
        self._note(costs.of_strangers(usage, size))
        async with Pods.watched(self._kube, "scale", is_bridged=True, are_left=True) as pods:
            await self._filled(pods)
            await self._waiting(pods)
            await self._known_anew(pods)

    async def _filled(self, pods: Pods) -> None:
        size = self._size

        async def run() -> None:
            named = await pods.create("running", size.filling)
            await pods.reached(Moment.BOUND, named, size.deadline_s)

        async def wait() -> None:
            named = await pods.create("waiting", size.waiting)
            self._victims = iter(named[::-1])
            await self._submitted(size.filling + size.waiting)

        await self._timed(f"{size.filling} pods bound", run())
        await self._timed(f"{size.waiting} more pods submitted", wait())
        await self._timed("calm", self._calm())
        await self._timed("all are told why they wait", self._told())

    async def _waiting(self, pods: Pods) -> None:
        usage = await self._at_rest("waiting")
        self._note(await self._cancelled(pods, "at rest", _CANCELS))
        self._note(await self._freed(pods))
        alone = await self._without_us()
        for figure in costs.of_waiting(usage, alone, self._size):
            self._note(figure)

    async def _known_anew(self, pods: Pods) -> None:
        """Measure the three occasions on which every job counts as new."""
        await self._calm()  # our services have been stopped
        all_of_them = 2 * self._size.strangers  # by extender and controllers
        for what, disturb, fetches in (
            ("new leaders", self._new_leaders, all_of_them),
            ("slurmctld restarted", self._slurmctld_restarted, all_of_them),
            ("counters reset, as at midnight", self._counters_reset, 0),
        ):
            await disturb()
            began, before = time.monotonic(), await self._read()
            async with asyncio.TaskGroup() as group:
                acted = group.create_task(self._cancelled(pods, what, 1))
                quiet_at = await self._calm(fetches)
                after = await self._read()
            for figure in costs.of_reading_anew(what, quiet_at - began, between(before, after)):
                self._note(figure)
            self._note(acted.result())

    async def _registered(self) -> None:
        async def are_there() -> bool:
            listed = await asyncio.to_thread(
                self._sandbox.run, "sinfo", "--noheader", "--Node", "--format=%N"
            )
            return len(set(listed.split())) >= self._size.nodes

        await self._until(are_there, "nodes are registered")

    async def _strange(self) -> None:
        async def submit(count: int) -> None:
            for _ in range(count):
                await self._slurm.jobs.submit(
                    name="strange", flags=["EXTERNAL_JOB"], hold=True, minimum_nodes=1
                )

        share, rest = divmod(self._size.strangers, _AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_ONCE):
                group.create_task(submit(share + (number < rest)))

    async def _submitted(self, pods: int) -> None:
        async def are() -> bool:
            calls = (await self._read()).calls
            return calls["extender → Slurm job.submit"] >= pods

        await self._until(are, "placeholders are submitted")

    async def _calm(self, fetches: int = 0) -> float:
        """Wait until jobs are hardly read any more, after so many fetches; return when that began.

        Raises:
            SandboxError: it takes too long.
        """
        calm_since, seen = time.monotonic(), await self._gets()
        count, enough = 0, seen + fetches
        ends = time.monotonic() + self._size.deadline_s
        while count < _CALM_READINGS:
            began = time.monotonic()
            await asyncio.sleep(_POLL_S)
            now = await self._gets()
            rate = (now - seen) / (time.monotonic() - began)
            if now < enough or rate > _CALM_GETS_PER_S:
                count, calm_since = 0, time.monotonic()
            else:
                count += 1
            seen = now
            if time.monotonic() > ends:
                raise SandboxError(f"jobs are still being read: {now} so far")
        return calm_since

    async def _told(self) -> None:
        """Wait until hardly any pod is told anything any more; the reasons of ten thousand take ten minutes.

        Raises:
            SandboxError: it takes too long.
        """
        count, seen = 0, await self._tells()
        ends = time.monotonic() + self._size.deadline_s
        while count < _CALM_READINGS:
            await asyncio.sleep(_POLL_S)
            now = await self._tells()
            count = count + 1 if now - seen <= 1 else 0
            seen = now
            if time.monotonic() > ends:
                raise SandboxError(f"pods are still being told why they wait: {now} so far")

    async def _tells(self) -> int:
        return (await self._read()).calls["extender → Kubernetes PATCH pods/status"]

    async def _gets(self) -> int:
        calls = (await self._read()).calls
        return sum(count for name, count in calls.items() if "Slurm job.get" in name)

    async def _at_rest(self, what: str) -> Usage:
        usage = await self._rested()
        for figure in costs.at_rest(what, usage, self._size.seconds):
            self._note(figure)
        return usage

    async def _rested(self) -> Usage:
        before = await self._read()
        await asyncio.sleep(self._size.seconds)
        return between(before, await self._read())

    async def _without_us(self) -> Usage:
        """Measure the same rest while our services are stopped: only they are left out, the queue is the same."""
        before = await self._read()
        for service in SERVICES:
            await asyncio.to_thread(self._sandbox.pause, service)
        parts = self._sandbox.status()
        at_first = self._meter.cpu_s(parts)
        await asyncio.sleep(self._size.seconds)
        used = self._meter.cpu_s(parts)
        for service in SERVICES:
            await asyncio.to_thread(self._sandbox.resume, service)
        return Usage(
            cpu_s={part: used[part] - at_first[part] for part in used},
            memory_mib=before.memory_mib,
            calls={},
        )

    async def _cancelled(self, pods: Pods, when: str, count: int) -> Figure:
        """Cancel jobs of waiting pods, and time until each pod has ended or is gone."""
        took: list[float] = []
        for _ in range(count):
            name = next(self._victims)
            job_id = await self._job_of(pods, name)
            began = time.perf_counter()
            await asyncio.to_thread(self._sandbox.run, "scancel", job_id)
            ended = await pods.reached(Moment.ENDED, [name], self._size.deadline_s)
            took.append(ended[name] - began)
        return Figure(
            what=f"scancel acted upon, {when}, longest of {count}",
            found=max(took),
            unit="s",
            most=_ACTED_S,
        )

    async def _job_of(self, pods: Pods, name: str) -> str:
        """Return a waiting pod's job by its workload's name in squeue, which pods without news have no label of."""
        listed = await asyncio.to_thread(
            self._sandbox.run, "squeue", "--noheader", f"--name={name}", "--format=%i"
        )
        if not listed.split():
            raise SandboxError(
                f"no job is named {name}: {names.JOB_ID_LABEL} of its pod: {await pods.sample(name)!r}"
            )
        return listed.split()[0]

    async def _freed(self, pods: Pods) -> Figure:
        """End one pod, and time until a waiting one has its place."""
        before = pods.count(Moment.BOUND)
        one = ["running-0"]
        await pods.end(one)
        ended = (await pods.reached(Moment.ENDED, one, self._size.deadline_s))[one[0]]
        bound = await pods.reached_by(Moment.BOUND, before + 1, self._size.deadline_s)
        return Figure(
            what="freed to first bound, while the others wait",
            found=bound - ended,
            unit="s",
            most=_FIRST_S,
        )

    async def _new_leaders(self) -> None:
        for service in ("extender", "controllers"):
            await asyncio.to_thread(self._sandbox.restart, service)

    async def _slurmctld_restarted(self) -> None:
        await asyncio.to_thread(self._sandbox.restart, "slurmctld")

    async def _counters_reset(self) -> None:
        await asyncio.to_thread(self._sandbox.run, "sdiag", "--reset")

    async def _read(self) -> Reading:
        """Read all counters; a service that has just been started may not answer yet."""
        ends = time.monotonic() + _START_S
        while True:
            try:
                return await asyncio.to_thread(self._meter.read)
            except OSError as error:
                if time.monotonic() > ends:
                    raise SandboxError(f"a service's metrics cannot be read: {error}") from error
            await asyncio.sleep(_POLL_S / 3)

    async def _until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        ends = time.monotonic() + self._size.deadline_s
        while not await condition():
            if time.monotonic() > ends:
                raise SandboxError(f"not within {self._size.deadline_s:g} s: {what}")
            await asyncio.sleep(_POLL_S)

    async def _timed(self, what: str, doing: Awaitable[object]) -> None:
        began = time.monotonic()
        await doing
        self._report.print(f"{what}: {time.monotonic() - began:.0f} s", markup=False)

    def _note(self, figure: Figure) -> None:
        self.figures.append(figure)
        self._report.print(*figure.cells()[:4], sep=" | ", markup=False)


async def _measure(sandbox: Sandbox, size: Size, console: Console) -> None:
    token = TokenFile(sandbox.token_file)
    async with (
        KubeClient.open(
            str(sandbox.kubeconfig), request_timeout_s=_TIMEOUT_S, user_agent="benchmarks"
        ) as kube,
        Client(sandbox.slurmrestd_url, token=token, timeout_s=_TIMEOUT_S) as slurm,
    ):
        bench = _Bench(sandbox, kube, slurm, size, console)
        try:
            await bench.run()
        finally:
            figures.show(bench.figures, console)


def main(
    *,
    waiting: Annotated[int, typer.Option(help="Pods that wait.", min=20)] = _USUAL.waiting,
    running: Annotated[int, typer.Option(help="Pods that run.", min=1)] = _USUAL.running,
    nodes: Annotated[int, typer.Option(help="Nodes.", min=1)] = _USUAL.nodes,
    strangers: Annotated[int, typer.Option(help="Jobs of others.", min=0)] = _USUAL.strangers,
    seconds: Annotated[float, typer.Option(help="Of each rest.", min=5)] = _USUAL.seconds,
    column: Annotated[str, typer.Option(help=" | ".join(columns.COLUMNS))] = columns.DEFAULTS,
) -> None:
    """Measure on a sandbox of its own; it takes about an hour at full size."""
    size = Size(waiting=waiting, running=running, nodes=nodes, strangers=strangers, seconds=seconds)
    console = Console(width=160, highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must get in
    try:
        options = size.options(columns.column(column).values)
        with Sandbox.up(folder, options) as sandbox:
            with sandbox.slurm_conf.open("a") as conf:
                conf.write(CONF)
            for part in ("slurmctld", "slurmrestd"):
                sandbox.restart(part)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                try:
                    runner.run(_measure(sandbox, size, console))
                except (SandboxError, TimeoutError) as error:
                    console.print(f"error: {error}\n{sandbox.log_tails()}", markup=False)
                    raise typer.Exit(1) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        typer.run(main)
