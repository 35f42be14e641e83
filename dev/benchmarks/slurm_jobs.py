"""`python -m benchmarks.slurm_jobs`: what SlurmJobs cost, and how soon their status says what Slurm says.

One sandbox with accounting and a real slurmd, with the default timings. First thousands of objects
that ended long ago lie about; then jobs are submitted that wait, some are cancelled one after the
other and the rest at once; in the end real scripts run. Our CPU time is that of the webhook, the
extender and the controllers, less what they use at rest.
"""

import asyncio
import contextlib
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import slurm_job_objects
from benchmarks.meter import SERVICES, Meter, cpu_s
from bridge.slurm import jobs as slurm_jobs
from sandbox import nss
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmjobs.objects.slurmjob import OURS, SlurmJobObject
from slurmjobs.reconcile import resource
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.watch import Reflector
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import JobId
from slurmruntime.values.oddities import UNHEARD

_NAMESPACE, _ATTIC = "jobs", "attic"
"""Where jobs run, and where those lie that ended long ago: that one is not Slurm's, so no webhook is asked."""
_BREAK_GLASS = ("system:masters", "slurm-bridge:break-glass")
_AT_A_TIME = 16
_PATIENCE_S = 300.0
_CALM_S = 5.0
_CHANGES_PER_S = 50
_TIMEOUT_S = 60.0
_USER = nss.JOB_USER.name
_RULES = [
    {"name": "batch", "match": {"kinds": ["SlurmJob"]}, "user": _USER, "working_directory": "/tmp"},  # noqa: S108  # a script's
    {"name": "pods", "user": _USER},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigure:
    """One result."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def is_missed(self) -> bool:
        """Whether it is not what it should be."""
        too_little = self.least is not None and self.value < self.least
        return too_little or (self.most is not None and self.value > self.most)

    @property
    def goal(self) -> str:
        """What it should be."""
        if self.least is not None:
            return f"≥ {self.least:g} {self.unit}"
        return "" if self.most is None else f"≤ {self.most:g} {self.unit}"


@dataclass(frozen=True, slots=True)
class _Rest:
    """What our services use while nothing happens."""

    cpu_share: float
    memory_mib: float
    calls_per_s: float


class _Watch:
    """Notes when each SlurmJob's status first said what it is watched for."""

    def __init__(self, kube: KubeClient) -> None:
        self.objects: Cache[SlurmJobObject] = Cache(resource.kind_of(OURS), UNHEARD)
        self.submitted: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.job_ids: dict[str, int] = {}
        self.news = asyncio.Event()
        self._reflector = Reflector(kube, self.objects)
        self.objects.subscribe(self._changed)

    async def run(self, stop: asyncio.Event) -> None:
        await self._reflector.run(stop)

    def _changed(self, _old: SlurmJobObject | None, new: SlurmJobObject | None) -> None:
        if new is None or new.metadata.namespace != _NAMESPACE:
            return
        name, now = new.metadata.name, time.monotonic()
        if new.status.job_id is not None:
            self.submitted.setdefault(name, now)
            self.job_ids[name] = new.status.job_id
        if new.status.phase in ("Succeeded", "Failed"):
            self.ended.setdefault(name, now)
        self.news.set()


class _Field:
    """The sandbox while it is measured."""

    def __init__(
        self, sandbox: Sandbox, kube: KubeClient, glass: KubeClient, slurm: SlurmClient
    ) -> None:
        self.sandbox = sandbox
        self.kube = kube
        self.glass = glass
        self.slurm = slurm
        self.meter = Meter(sandbox)
        self.watch = _Watch(kube)

    def cpu_s(self) -> float:
        parts = self.sandbox.status()
        return sum(cpu_s(parts[name].pid or 0) for name in SERVICES)

    async def rest(self, seconds: float) -> _Rest:
        """Watch our services while nothing happens."""
        before = await asyncio.to_thread(self.meter.read)
        await asyncio.sleep(seconds)
        after = await asyncio.to_thread(self.meter.read)
        used = sum(after.cpu_before_s[name] - before.cpu_after_s[name] for name in SERVICES)
        calls = (after.calls - before.calls).total()
        return _Rest(used / seconds, after.memory_mib["controllers"], calls / seconds)

    async def create(self, name: str, command: str, **options: Any) -> None:
        script = f"#!/bin/sh\n#SBATCH --mem=16 --time=5 --output=/dev/null\n{command}\n"
        await self.kube.request(
            "POST",
            slurm_job_objects.path(_NAMESPACE),
            body=slurm_job_objects.manifest(name, script, options),
        )

    async def create_all(self, called: Iterable[str], command: str, **options: Any) -> None:
        await _each(called, lambda name: self.create(name, command, **options))

    async def until(self, told: Mapping[str, float], called: Sequence[str]) -> None:
        """Wait until all of them are told."""
        async with asyncio.timeout(_PATIENCE_S):
            while not all(name in told for name in called):
                self.watch.news.clear()
                await self.watch.news.wait()


def main(
    *,
    jobs: Annotated[int, typer.Option(help="SlurmJobs submitted.", min=10)] = 1000,
    finished: Annotated[int, typer.Option(help="SlurmJobs that ended long ago.")] = 10_000,
    run: Annotated[int, typer.Option(help="SlurmJobs whose scripts really run.", min=1)] = 200,
    rest_s: Annotated[float, typer.Option(help="How long to watch what rests.", min=1)] = 30,
) -> None:
    """Measure SlurmJobs on a sandbox of its own; ends with 1 if a goal is missed."""
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    options = Options(
        hybrid=True,
        nodes=0,
        accounting=True,
        hurried=False,
        settings=("slurm_jobs.enabled=true", f"policy.rules={_RULES}"),
    )
    try:
        with Sandbox.up(folder, options) as sandbox:
            figures = uvloop.run(
                _measured(sandbox, console, jobs=jobs, finished=finished, run=run, rest_s=rest_s)
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table = Table("what", "found", "goal", "")
    for figure in figures:
        missed = "missed" if figure.is_missed else ""
        table.add_row(figure.name, f"{figure.value:.3g} {figure.unit}", figure.goal, missed)
    console.print(table)
    raise typer.Exit(1 if any(each.is_missed for each in figures) else 0)


async def _measured(
    sandbox: Sandbox, console: Console, *, jobs: int, finished: int, run: int, rest_s: float
) -> list[JobFigure]:
    async with _field(sandbox) as field:
        await asyncio.sleep(_CALM_S)
        rest = await field.rest(rest_s)
        found: list[JobFigure] = []
        if finished:
            console.print(f"{finished} SlurmJobs that ended long ago")
            found += await _finished(field, finished, rest, rest_s)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(field.watch.run(stop))
            console.print(f"{jobs} SlurmJobs are submitted, and wait")
            found += await _submitted(field, jobs, rest)
            console.print(f"half of them are cancelled, {_CHANGES_PER_S} a second")
            found += await _one_by_one(field, jobs // 2)
            console.print(f"{jobs} of them are cancelled at once")
            found += await _at_once(field, jobs, rest)
            console.print(f"{run} scripts run")
            found += await _lives(field, run, rest)
            stop.set()
        return found


@asynccontextmanager
async def _field(sandbox: Sandbox) -> AsyncIterator[_Field]:
    glass = sandbox.user_kubeconfig("bench", *_BREAK_GLASS)
    agent: Mapping[str, Any] = {"request_timeout_s": _TIMEOUT_S, "user_agent": "benchmarks"}
    async with (
        KubeClient.open(str(sandbox.kubeconfig), **agent) as kube,
        KubeClient.open(str(glass), **agent) as of_glass,
        SlurmClient.open(sandbox.slurmrestd_url, token_file=sandbox.token_file) as slurm,
    ):
        for name, labels in ((_NAMESPACE, {names.ENABLED_LABEL: "true"}), (_ATTIC, {})):
            body = {"metadata": {"name": name, "labels": labels}}
            await kube.request("POST", "/api/v1/namespaces", body=body)
        yield _Field(sandbox, kube, of_glass, slurm)


# -- the stretches --------------------------------------------------------------------------------


async def _finished(field: _Field, count: int, rest: _Rest, rest_s: float) -> list[JobFigure]:
    sandbox, path = field.sandbox, slurm_job_objects.path(_ATTIC)
    await asyncio.to_thread(sandbox.stop, "controllers")

    async def create(name: str) -> None:
        manifest = slurm_job_objects.manifest(
            name, "#!/bin/sh\nsrun ./train --epochs 100\n" * 10, {}
        )
        await field.glass.request("POST", path, body=manifest)
        body = {"status": slurm_job_objects.ended()}
        patch = "application/merge-patch+json"
        await field.glass.request("PATCH", f"{path}/{name}/status", body=body, content_type=patch)

    await _each((f"old-{number}" for number in range(count)), create)
    await asyncio.to_thread(sandbox.start, "controllers")
    await _await_finished(sandbox, count)
    await asyncio.sleep(3 * _CALM_S)
    now = await field.rest(rest_s)
    await field.kube.request("DELETE", path)
    await _await_finished(sandbox, 0)
    return [
        JobFigure(
            name="finished: more CPU of ours at rest",
            value=100 * (now.cpu_share - rest.cpu_share),
            unit="% of a core",
            most=0.2,
        ),
        JobFigure(
            name="finished: more requests of ours",
            value=now.calls_per_s - rest.calls_per_s,
            unit="/s",
            most=0.2,  # leases and readings do not come at the same moments in both stretches
        ),
        JobFigure(
            name="finished: more memory of the controllers",
            value=now.memory_mib - rest.memory_mib,
            unit="MiB",
            most=60,
        ),
    ]


async def _submitted(field: _Field, jobs: int, rest: _Rest) -> list[JobFigure]:
    called = [f"held-{number}" for number in range(jobs + jobs // 2)]
    began, cpu_before_s = time.monotonic(), await asyncio.to_thread(field.cpu_s)
    await field.create_all(called, "true", begin="2035-01-01T00:00:00")
    created = time.monotonic()
    await field.until(field.watch.submitted, called)
    took_s = time.monotonic() - began
    used_s = await asyncio.to_thread(field.cpu_s) - cpu_before_s - rest.cpu_share * took_s
    return [
        JobFigure(name="created", value=len(called) / (created - began), unit="/s"),
        JobFigure(name="submitted", value=len(called) / took_s, unit="/s", least=50),
        JobFigure(
            name="our CPU up to a job id", value=1000 * used_s / len(called), unit="ms", most=5
        ),
    ]


async def _one_by_one(field: _Field, count: int) -> list[JobFigure]:
    changed: dict[str, float] = {}
    began = time.monotonic()

    async def cancel(number: int, name: str) -> None:
        await asyncio.sleep(began + number / _CHANGES_PER_S - time.monotonic())
        await slurm_jobs.cancel(field.slurm, JobId(field.watch.job_ids[name]))
        changed[name] = time.monotonic()

    called = [f"held-{number}" for number in range(count)]
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(called):
            group.create_task(cancel(number, name))
    await field.until(field.watch.ended, called)
    delays_s = [field.watch.ended[name] - changed[name] for name in called]
    return [
        JobFigure(
            name=f"from a change to the status, median at {_CHANGES_PER_S}/s",
            value=statistics.median(delays_s),
            unit="s",
        ),
        JobFigure(
            name=f"from a change to the status, p99 at {_CHANGES_PER_S}/s",
            value=statistics.quantiles(delays_s, n=100)[98],
            unit="s",
            most=2,
        ),
    ]


async def _at_once(field: _Field, jobs: int, rest: _Rest) -> list[JobFigure]:
    called = [f"held-{number}" for number in range(jobs // 2, jobs + jobs // 2)]
    cpu_before_s, began = await asyncio.to_thread(field.cpu_s), time.monotonic()
    await asyncio.to_thread(field.sandbox.run, "scancel", f"--user={_USER}", timeout_s=_TIMEOUT_S)
    cancelled = time.monotonic()
    await field.until(field.watch.ended, called)
    settled = time.monotonic()
    used_s = (
        await asyncio.to_thread(field.cpu_s) - cpu_before_s - rest.cpu_share * (settled - began)
    )
    return [
        JobFigure(
            name=f"{jobs} changes at once settle in", value=settled - cancelled, unit="s", most=15
        ),
        JobFigure(name="our CPU for an end", value=1000 * used_s / len(called), unit="ms"),
    ]


async def _lives(field: _Field, count: int, rest: _Rest) -> list[JobFigure]:
    called = [f"run-{number}" for number in range(count)]
    cpu_before_s, began = await asyncio.to_thread(field.cpu_s), time.monotonic()
    await field.create_all(called, "true")
    await field.until(field.watch.ended, called)
    took_s = time.monotonic() - began
    used_s = await asyncio.to_thread(field.cpu_s) - cpu_before_s - rest.cpu_share * took_s
    return [
        JobFigure(name="scripts run", value=count / took_s, unit="/s"),
        JobFigure(name="our CPU for a whole life", value=1000 * used_s / count, unit="ms", most=15),
    ]


# -- its tools ------------------------------------------------------------------------------------


async def _each(called: Iterable[str], do: Callable[[str], Awaitable[None]]) -> None:
    left = iter(called)

    async def work() -> None:
        for name in left:
            await do(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_A_TIME):
            group.create_task(work())


async def _await_finished(sandbox: Sandbox, count: int) -> None:
    """Wait until the controllers know so many SlurmJobs that have ended."""
    wanted = f'slurm_bridge_slurm_jobs{{phase="Succeeded"}} {float(count)}'
    url = sandbox.env["SLURM_BRIDGE_METRICS_CONTROLLERS"]
    async with asyncio.timeout(_PATIENCE_S), httpx.AsyncClient(trust_env=False) as client:
        while True:
            with contextlib.suppress(httpx.TransportError):  # it may be starting
                if wanted in (await client.get(url)).text:
                    return
            await asyncio.sleep(1)


if __name__ == "__main__":
    typer.run(main)
