"""`python -m benchmarks.exporter`: what slurm-exporter costs, and what it costs Slurm, at many nodes and jobs.

Every goal is printed beside the figure found, with what SchedMD's slurm-exporter took at this size. With
and without the exporter differ by stopping its process (SIGSTOP): the rest of the machine stays as it is.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Final

import httpx
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from benchmarks import figures
from benchmarks.client import Row, watched
from benchmarks.figures import Figure
from benchmarks.meter import cpu_s, peak_memory_mib
from sandbox import ports
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Client, TokenFile
from slurmclient.wire import reading

_AT_ONCE: Final = 8
_INTERVAL_S: Final = 15
_SCRAPES: Final = 200
_TIMEOUT_S: Final = 300.0
_LIVES_S: Final = 10
"""How long a short job runs; the load has been on for longer when it is measured."""
_WITHOUT_S: Final = 20
"""How long to measure without the exporter: nothing in it has a period."""
_ROUND_S: Final = 50
"""How long to read the reasons of all jobs once; in production ten times as long, at 20 a second."""
_REASONS_PER_S: Final = 20
_WATCH_S: Final = 15
_PARTS: Final = ("slurmctld", "slurmrestd")
_PAGES: Final = ("own", "slinky", "native", "vpenso")
_ROOM: Final = """
MaxJobCount=100000
MinJobAge=60
"""


class Bench:
    """One sandbox, and exporters that come and go."""

    def __init__(self, sandbox: Sandbox, slurm: Client, seconds: float, report: Console) -> None:
        self._sandbox = sandbox
        self._slurm = slurm
        self._seconds = seconds
        self._report = report
        self.figures: list[Figure] = []

    async def run(self, jobs: int) -> None:
        """Measure everything, what matters most first."""
        began = time.perf_counter()
        await asyncio.gather(*(self._submit(jobs // _AT_ONCE) for _ in range(_AT_ONCE)))
        self._report.print(f"{jobs} jobs submitted in {time.perf_counter() - began:.0f} s")
        await self._decoding()
        async with self._exporter("--reason-rate=0") as (url, pid):
            await self._scrapes(url, pid)
            standing = await self._standing(pid, "no reasons", 2.0)
            for rate in (1, 10):
                await self._changing(pid, rate, standing)
            self._note(
                "memory of the exporter, at most", peak_memory_mib(pid), "MiB", 200,
                theirs="1.3 GB in slurmrestd",
            )  # fmt: skip
        await self._reasons(jobs, standing)
        await self._watching()

    async def _reasons(self, jobs: int, standing: float) -> None:
        """Measure what reading all reasons once costs, and spread it over the time it takes at 20 a second."""
        rate = jobs // _ROUND_S
        async with self._exporter(f"--reason-rate={rate}", f"--look-rate={rate}") as (url, pid):
            began_s, read = time.monotonic(), 0.0

            async def round_() -> None:
                nonlocal read
                oldest_s, newer_s = await self._renewed(url)
                is_listed = newer_s < oldest_s / 2
                read = jobs if is_listed else rate * (time.monotonic() - began_s)

            more, _ = await self._more(pid, round_())
            took_s = time.monotonic() - began_s - _WITHOUT_S - 1
            each_s = (sum(more.values()) - standing / 100) * took_s / read
            self._note(
                f"Slurm's CPU for {_REASONS_PER_S} reasons/s", 100 * each_s * _REASONS_PER_S,
                "% of a core more", 4.0,
                words=f"{1000 * each_s:.2f} ms each, {read:.0f} in {took_s:.0f} s",
            )  # fmt: skip

    async def _renewed(self, url: str) -> tuple[float, float]:
        """Wait until the oldest reason is younger than before; return both ages."""
        oldest_s = 0.0
        async with httpx.AsyncClient(trust_env=False, timeout=30) as web:
            for _ in range(4 * _ROUND_S):
                page = await web.get(f"{url}/metrics/own")
                age_s = _value(page, "slurm_pending_reason_age_seconds") or 0.0
                if age_s < oldest_s:
                    return oldest_s, age_s
                oldest_s = age_s
                await asyncio.sleep(1)
        return oldest_s, oldest_s

    async def _decoding(self) -> None:
        header = {"X-SLURM-USER-TOKEN": self._sandbox.token()}
        version = (await self._slurm.dialect()).version
        url = f"{self._sandbox.slurmrestd_url}/slurm/v0.0.{version}/jobs/"
        before, began = self._cpu(), time.perf_counter()
        async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S, headers=header) as web:
            body = (await web.get(url)).content
        took_s, spent_s = time.perf_counter() - began, self._spent(before)
        took = [_decoded(body) for _ in range(3)]
        self._note(
            f"decoding {took[0][1]} jobs, three fields", 1000 * min(t for t, _ in took), "ms of CPU",
            150, words=f"{len(body) / 1e6:.0f} MB",
        )  # fmt: skip
        self._note(
            "  one list of all jobs", took_s, "s",
            words=f"{_words(spent_s)} s of CPU",
            theirs="each 5 s: never keeps up",
        )  # fmt: skip

    async def _standing(self, pid: int, what: str, most: float | None) -> float:
        """Measure what a queue in which nothing happens costs Slurm, in % of a core."""
        more, exporter_s = await self._more(pid)
        percent = {part: 100 * share for part, share in more.items()}
        self._note(
            f"Slurm's CPU, 0 jobs/s, {what}", sum(percent.values()), "% of a core", most,
            words=f"{_words(percent)}; {exporter_s:.2f} s of the exporter's CPU in {self._seconds:.0f} s",
            theirs="144 %: 7.2 s of CPU per 5 s",
        )  # fmt: skip
        return sum(percent.values())

    async def _changing(self, pid: int, rate: int, standing: float) -> None:
        """Measure what each of many short jobs costs Slurm more because the exporter runs."""
        async with asyncio.TaskGroup() as group:
            load = group.create_task(self._short_jobs(rate))
            await asyncio.sleep(_LIVES_S + 2)
            more, exporter_s = await self._more(pid)
            load.cancel()
        percent = 100 * sum(more.values())
        self._note(
            f"Slurm's CPU for each job, {rate} jobs/s", 10 * (percent - standing) / rate, "ms", 6.0,
            words=f"{percent:.1f} % of a core in all, capped by --look-rate; {exporter_s:.2f} s of the exporter's",
        )  # fmt: skip

    async def _more(
        self, pid: int, while_: Awaitable[None] | None = None
    ) -> tuple[Mapping[str, float], float]:
        """Measure with the exporter running, then with it stopped.

        Args:
            pid: The exporter's process.
            while_: Measure with it until this is done, by default for a while.

        Returns:
            How much more of a core each part of Slurm takes with it, and its own seconds of CPU.
        """
        before, began_s = self._cpu(pid), time.monotonic()
        await (while_ or asyncio.sleep(self._seconds))
        running, with_s = self._spent(before, pid), time.monotonic() - began_s
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(1)  # what slurmrestd has begun
            before = self._cpu(pid)
            await asyncio.sleep(_WITHOUT_S)
            stopped = self._spent(before, pid)
        finally:
            os.kill(pid, signal.SIGCONT)
        more = {part: running[part] / with_s - stopped[part] / _WITHOUT_S for part in _PARTS}
        return more, running["exporter"]

    async def _short_jobs(self, rate: int) -> None:
        """Submit jobs that start, and cancel each a little later, until cancelled."""
        loop = asyncio.get_running_loop()
        alive: list[int] = []
        next_s = loop.time()
        try:
            while True:
                answer = await self._slurm.jobs.submit(
                    name="short", flags=["EXTERNAL_JOB"], minimum_nodes=1
                )
                alive.append(answer.job_id)
                if len(alive) > rate * _LIVES_S:
                    await self._slurm.jobs.cancel(alive.pop(0))
                next_s += 1 / rate
                await asyncio.sleep(max(0.0, next_s - loop.time()))
        finally:
            if alive:
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
                    f"CPU of a scrape, {scrapers} at a time", each_ms, "ms", 5,
                    words=f"{size / 1e6:.1f} MB",
                    theirs="each object encoded 4 times",
                )  # fmt: skip
                self._note(
                    f"p99 of a scrape, {scrapers} at a time",
                    1000 * walls[int(len(walls) * 0.99)], "ms", 20,
                    words=f"median {1000 * walls[len(walls) // 2]:.1f}",
                )  # fmt: skip

    async def _watching(self) -> None:
        """Measure the client's `watch`; the jobs that change are cancelled by another process."""
        listed = await self._slurm.jobs.list(as_=Row)
        left = [row.job_id for row in listed if "PENDING" in row.job_state]
        for interval_s, most in ((1.0, 5.0), (5.0, 2.0)):
            count = int((_WATCH_S + interval_s) * 10)
            changed, left = left[-count:], left[:-count]
            spent, changes = await watched(
                self._sandbox, self._slurm, changed, interval_s, _WATCH_S
            )
            slurm = {part: 100 * spent[part] / _WATCH_S for part in _PARTS}
            self._note(
                f"watch every {interval_s:g} s, {changes} changes in {_WATCH_S} s",
                100 * spent["client"] / _WATCH_S, "% of a core", most,
                words=f"{_words(slurm)} %",
            )  # fmt: skip

    @asynccontextmanager
    async def _exporter(self, *arguments: str) -> AsyncIterator[tuple[str, int]]:
        """Run an exporter; it has read all jobs when this yields its address and process id."""
        began = time.perf_counter()
        before = self._cpu()
        with self._process(*arguments) as (url, pid):
            await self._filled(url)
            self._note(
                "first fill, until all jobs are read", time.perf_counter() - began, "s",
                words=f"{cpu_s(pid):.1f} s of the exporter's CPU, {_words(self._spent(before))} of Slurm's",
            )  # fmt: skip
            await asyncio.sleep(_INTERVAL_S)
            yield url, pid

    async def _filled(self, url: str) -> None:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30) as web,
            asyncio.timeout(_TIMEOUT_S),
        ):
            unread = None
            while unread != 0:
                await asyncio.sleep(0.5)
                unread = _value(await web.get(f"{url}/metrics/own"), "slurm_exporter_unread_jobs")

    @contextmanager
    def _process(self, *arguments: str) -> Iterator[tuple[str, int]]:
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

    def _cpu(self, pid: int | None = None) -> Mapping[str, float]:
        status = self._sandbox.status()
        found = {part: cpu_s(known) for part in _PARTS if (known := status[part].pid)}
        return {**found, "exporter": cpu_s(pid)} if pid else found

    def _spent(self, before: Mapping[str, float], pid: int | None = None) -> Mapping[str, float]:
        return {part: now - before[part] for part, now in self._cpu(pid).items()}

    def _note(
        self,
        what: str,
        found: float,
        unit: str,
        most: float | None = None,
        *,
        words: str = "",
        theirs: str = "",
    ) -> None:
        figure = Figure(what=what, found=found, unit=unit, most=most, words=words, theirs=theirs)
        self.figures.append(figure)
        self._report.print(*figure.cells(), sep=" | ")


def _decoded(body: bytes) -> tuple[float, int]:
    began = time.process_time()
    listed, _ = reading.listing(body, "jobs", Row)
    return time.process_time() - began, len(listed)


def _value(page: httpx.Response, name: str) -> float | None:
    for family in text_string_to_metric_families(page.text):
        for sample in family.samples:
            if sample.name == name:
                return sample.value
    return None


def _words(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{part} {amount:.2f}" for part, amount in amounts.items())


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


async def _measure(sandbox: Sandbox, jobs: int, seconds: float, console: Console) -> None:
    token = TokenFile(sandbox.token_file)
    async with Client(sandbox.slurmrestd_url, token=token, timeout_s=_TIMEOUT_S) as slurm:
        bench = Bench(sandbox, slurm, seconds, console)
        try:
            await bench.run(jobs)
        finally:
            figures.show(bench.figures, console)


def main(
    *,
    jobs: Annotated[int, typer.Option(help="Jobs in the queue.", min=100)] = 10_000,
    nodes: Annotated[int, typer.Option(help="Nodes.", min=1)] = 1000,
    seconds: Annotated[
        float, typer.Option(help="Of each measurement; nodes are listed every 45 s.", min=45)
    ] = 45,
) -> None:
    """Measure on a sandbox of its own; seven to eight minutes on a quiet machine."""
    began = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must get in
    console = Console(width=200)
    try:
        options = Options(kubernetes=False, bridge=False, nodes=nodes)
        with Sandbox.up(folder, options) as sandbox:
            text = sandbox.slurm_conf.read_text().replace("MinJobAge=300\n", "")
            sandbox.slurm_conf.write_text(text + _ROOM)
            sandbox.restart("slurmctld")
            sandbox.restart("slurmrestd")
            console.print(f"{nodes} nodes up in {time.perf_counter() - began:.0f} s")
            asyncio.run(_measure(sandbox, jobs, seconds, console))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(f"load {os.getloadavg()[0]:.1f}, {time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    typer.run(main)
