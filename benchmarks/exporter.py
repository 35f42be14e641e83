"""`python -m benchmarks.exporter`: what slurm-exporter costs, and what it costs Slurm, at many nodes and jobs."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.meter import cpu_s
from sandbox import ports
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Client, Model, TokenFile

_AT_ONCE = 8
_INTERVAL_S = 15
_SCRAPES = 200
_TIMEOUT_S = 600.0
_PARTS = ("slurmctld", "slurmrestd")
_PAGES = ("own", "slinky", "native", "vpenso")
_THEIRS = {
    "scrape CPU": "4 re-marshals of every object",
    "Slurm, standing queue": "7.2 s per 5 s: never keeps up",
    "memory": "1.3 GB in slurmrestd",
}
"""SchedMD's slurm-exporter at the same size, as it was measured with its requests."""
_ROOM = """
MaxJobCount=100000
MinJobAge=60
"""


class Row(Model, frozen=True):
    """Three fields, as a program that looks at a queue needs."""

    job_id: int
    user_name: str = ""
    job_state: frozenset[str] = frozenset()


class Bench:
    """One sandbox, and exporters that come and go."""

    def __init__(self, sandbox: Sandbox, slurm: Client, seconds: float) -> None:
        self._sandbox = sandbox
        self._slurm = slurm
        self._seconds = seconds
        self.rows: list[tuple[str, str, str]] = []

    async def run(self, jobs: int) -> None:
        """Measure everything."""
        await asyncio.gather(*(self._submit(jobs // _AT_ONCE) for _ in range(_AT_ONCE)))
        began, began_cpu_s = time.perf_counter(), time.process_time()
        listed = await self._slurm.jobs.list(as_=Row)
        self._note("list of all jobs, three fields", f"{time.perf_counter() - began:.1f} s")
        self._note(
            "  of it our CPU", f"{time.process_time() - began_cpu_s:.2f} s, {len(listed)} jobs"
        )

        idle = await self._spent(self._nothing())
        with self._exporter("--reason-rate=0") as (url, pid):
            await self._settled(url)
            spent = await self._spent(self._nothing())
            self._shares("standing queue, no reasons", spent, idle, "Slurm, standing queue")
            await self._scrapes(url, pid)
            self._note("memory of the exporter", f"{_memory_mib(pid):.0f} MiB", "memory")
        with self._exporter() as (url, _):
            await self._settled(url)
            spent = await self._spent(self._nothing())
            self._shares("standing queue, 20 reasons/s", spent, idle)
        for rate in (1, 10):
            alone = await self._spent(self._change(rate))
            with self._exporter("--reason-rate=0") as (url, pid):
                await self._settled(url)
                spent = await self._spent(self._change(rate))
            extra_s = sum(spent.values()) - sum(alone.values())
            each_ms = 1000 * extra_s / (rate * self._seconds)
            self._note(f"{rate} jobs/s, more for each", f"{each_ms:.1f} ms, standing cost included")

    async def _spent(self, load: Awaitable[None]) -> Mapping[str, float]:
        before = self._cpu()
        await load
        return {part: now - before[part] for part, now in self._cpu().items()}

    async def _nothing(self) -> None:
        await asyncio.sleep(self._seconds)

    async def _change(self, rate: float) -> None:
        """Submit jobs that start, and cancel each a little later."""
        ends = asyncio.get_running_loop().time() + self._seconds
        alive: list[int] = []
        while (now := asyncio.get_running_loop().time()) < ends:
            answer = await self._slurm.jobs.submit(
                name="short", flags=["EXTERNAL_JOB"], minimum_nodes=1
            )
            alive.append(answer.job_id)
            if len(alive) > rate * 20:
                await self._slurm.jobs.cancel(alive.pop(0))
            await asyncio.sleep(max(0.0, 1 / rate - (asyncio.get_running_loop().time() - now)))
        await self._slurm.jobs.cancel_many(*alive)

    async def _submit(self, count: int) -> None:
        for _ in range(count):
            await self._slurm.jobs.submit(
                name="load", flags=["EXTERNAL_JOB"], hold=True, minimum_nodes=1
            )

    async def _scrapes(self, url: str, pid: int) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=30) as web:
            for page in _PAGES:
                await web.get(f"{url}/metrics/{page}")
            for scrapers in (1, 4):
                walls: list[float] = []
                before_s = cpu_s(pid)
                await asyncio.gather(
                    *(_scrape(web, f"{url}/metrics", walls) for _ in range(scrapers))
                )
                each_ms = 1000 * (cpu_s(pid) - before_s) / len(walls)
                walls.sort()
                size = len((await web.get(f"{url}/metrics")).content)
                self._note(
                    f"a scrape, {scrapers} scrapers",
                    f"{each_ms:.1f} ms of CPU, p50 {1000 * walls[len(walls) // 2]:.1f} ms,"
                    f" p99 {1000 * walls[int(len(walls) * 0.99)]:.1f} ms, {size / 1e6:.1f} MB",
                    "scrape CPU",
                )

    async def _settled(self, url: str) -> None:
        """Wait until all jobs have been read."""
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30) as web,
            asyncio.timeout(_TIMEOUT_S),
        ):
            text = ""
            while 'data_fresh{source="jobs"} 1' not in text:
                await asyncio.sleep(0.5)
                text = (await web.get(f"{url}/metrics/exporter")).text
        await asyncio.sleep(_INTERVAL_S)

    @contextmanager
    def _exporter(self, *arguments: str) -> Iterator[tuple[str, int]]:
        dice = random.Random()  # noqa: S311  # a port, nothing secret
        port = ports.choose(["exporter"], dice=dice)["exporter"]
        process = subprocess.Popen(
            (
                sys.executable, "-m", "slurmexporter", f"--listen=127.0.0.1:{port}",
                f"--server={self._sandbox.slurmrestd_url}", "--no-accounting",
                f"--token-file={self._sandbox.token_file}", f"--interval={_INTERVAL_S}s", *arguments,
            ),
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            _await_answer(url)
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(30)

    def _cpu(self) -> Mapping[str, float]:
        status = self._sandbox.status()
        return {part: cpu_s(pid) for part in _PARTS if (pid := status[part].pid)}

    def _shares(
        self, what: str, spent: Mapping[str, float], idle: Mapping[str, float], theirs: str = ""
    ) -> None:
        more = {part: 100 * (used - idle[part]) / self._seconds for part, used in spent.items()}
        words = ", ".join(f"{part} {share:.2f} %" for part, share in more.items())
        self._note(what, f"{sum(more.values()):.2f} % of a core ({words})", theirs)

    def _note(self, what: str, figure: str, theirs: str = "") -> None:
        self.rows.append((what, figure, _THEIRS.get(theirs, "")))


async def _scrape(web: httpx.AsyncClient, url: str, walls: list[float]) -> None:
    for _ in range(_SCRAPES):
        began = time.perf_counter()
        async with web.stream("GET", url, headers={"Accept-Encoding": "gzip"}) as answer:
            async for _ in answer.aiter_raw():
                pass
        walls.append(time.perf_counter() - began)


def _await_answer(url: str) -> None:
    ends = time.monotonic() + 30
    while True:
        try:
            httpx.get(f"{url}/livez", trust_env=False)
        except httpx.TransportError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)
        else:
            return


def _memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def _shown(rows: Sequence[tuple[str, str, str]], console: Console) -> None:
    table = Table("what", "slurm-exporter here", "SchedMD's")
    for row in rows:
        table.add_row(*row)
    console.print(table)


async def _measure(sandbox: Sandbox, jobs: int, seconds: float, console: Console) -> None:
    token = TokenFile(sandbox.token_file)
    async with Client(sandbox.slurmrestd_url, token=token, timeout_s=_TIMEOUT_S) as slurm:
        bench = Bench(sandbox, slurm, seconds)
        try:
            await bench.run(jobs)
        finally:
            _shown(bench.rows, console)


def main(
    *,
    jobs: Annotated[int, typer.Option(help="Jobs in the queue.", min=100)] = 10_000,
    nodes: Annotated[int, typer.Option(help="Nodes.", min=1)] = 1000,
    seconds: Annotated[float, typer.Option(help="Of each measurement.", min=15)] = 60,
) -> None:
    """Measure on a sandbox of its own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must get in
    try:
        options = Options(kubernetes=False, bridge=False, nodes=nodes)
        with Sandbox.up(folder, options) as sandbox:
            text = sandbox.slurm_conf.read_text().replace("MinJobAge=300\n", "")
            sandbox.slurm_conf.write_text(text + _ROOM)
            sandbox.restart("slurmctld")
            sandbox.restart("slurmrestd")
            asyncio.run(_measure(sandbox, jobs, seconds, Console()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    typer.run(main)
