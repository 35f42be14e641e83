"""`python -m benchmarks.gangs`.

What a gang costs when it starts, and what gangs cost while they wait.

One gang is submitted to an empty cluster; then other jobs take every node, several gangs wait, and
nothing happens for a while. Calls are counted by our services; CPU time is the kernel's.
"""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import httpx
import msgspec
import typer
import uvloop
from rich.table import Table

from benchmarks import meter, report
from benchmarks.load import Moment, Pods
from benchmarks.meter import SERVICES, Meter
from benchmarks.results import Usage
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names

_NODE_CPUS = 8
_SETTLE_S = 10.0
"""By then, pods that wait have been given the reason."""
_PATIENCE_S = 300.0
_REQUEST_TIMEOUT_S = 60.0
_FIXED = ("job.states", "diag", "node.list")
"""Slurm calls made at a fixed interval, whatever waits."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run."""

    size: int
    gangs: int
    waiting_s: float
    created_to_bound_s: float
    """From the first CREATE to the last pod's node."""
    start_to_bound_s: float
    """From the beginning of the second in which Slurm started the job, so up to a second too much."""
    started: Usage
    """From the first CREATE until two seconds after the last pod got its node."""
    waited: Usage
    """While all gangs waited."""


def main(
    *,
    size: Annotated[int, typer.Option(help="Pods per gang.", min=2)] = 64,
    gangs: Annotated[int, typer.Option(help="Gangs that wait.", min=1)] = 10,
    waiting_s: Annotated[float, typer.Option(help="How long to watch waiting gangs.", min=1)] = 40,
    output: Annotated[
        Path | None, typer.Option(help="Write the figures to this file, as JSON.")
    ] = None,
) -> None:
    """Measure gangs on a sandbox of their own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    nodes = -(-size // _NODE_CPUS)
    options = Options(nodes=nodes, plain_nodes=0, node_cpus=_NODE_CPUS)
    try:
        with (
            Sandbox.up(folder, options) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            try:
                figures = runner.run(_measure(sandbox, nodes, size, gangs, waiting_s))
            except SandboxError as error:
                raise SandboxError(f"{error}\n{sandbox.log_tails()}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _show(figures)
    if output:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


async def _measure(
    sandbox: Sandbox, nodes: int, size: int, gangs: int, waiting_s: float
) -> Figures:
    gauge = Meter(sandbox)
    async with KubeClient.open(
        str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
    ) as kube:
        async with Pods.watched(kube, "warm", is_bridged=True) as pods:
            warm = await pods.create("warm", _NODE_CPUS)
            await pods.reached(Moment.BOUND, warm, _PATIENCE_S)
        async with Pods.watched(kube, "starts", is_bridged=True) as pods:
            before = await asyncio.to_thread(gauge.read)
            members = await pods.create("rank", size, group="one")
            bound = await pods.reached(Moment.BOUND, members, _PATIENCE_S)
            last = SystemClock().now().timestamp() - time.perf_counter() + max(bound.values())
            to_bound_s = max(bound.values()) - pods.first(Moment.SENT, members)
            await asyncio.sleep(2)
            after = await asyncio.to_thread(gauge.read)
            job_id = msgspec.json.decode(await pods.sample(members[0]))["metadata"]["labels"]
            began = _job(sandbox, job_id[names.JOB_ID_LABEL])["start_time"]["number"]
        started = meter.between(before, after)
        whole = ("--external", "--exclusive", "--job-name=stranger", f"--nodes={nodes}")
        stranger = await asyncio.to_thread(sandbox.run, "sbatch", "--parsable", *whole)
        async with Pods.watched(kube, "waits", is_bridged=True) as pods:
            all_of_them: list[str] = []
            for number in range(gangs):
                group = f"gang-{number}"
                all_of_them += await pods.create(group, size, group=group)
            await pods.reached(Moment.TOLD, all_of_them, _PATIENCE_S)
            await asyncio.sleep(_SETTLE_S)
            before = await asyncio.to_thread(gauge.read)
            await asyncio.sleep(waiting_s)
            after = await asyncio.to_thread(gauge.read)
        await asyncio.to_thread(sandbox.run, "scancel", stranger.strip())
    return Figures(
        size=size,
        gangs=gangs,
        waiting_s=waiting_s,
        created_to_bound_s=round(to_bound_s, 3),
        start_to_bound_s=round(last - began, 3),
        started=started,
        waited=meter.between(before, after),
    )


def _job(sandbox: Sandbox, job_id: str) -> dict[str, Any]:
    answer = httpx.get(
        f"{sandbox.slurmrestd_url}/slurm/v0.0.44/job/{job_id}",
        headers={"X-SLURM-USER-TOKEN": sandbox.token()},
        trust_env=False,
    )
    (job,) = answer.json()["jobs"]
    return dict(job)


def _show(figures: Figures) -> None:
    console = report.console()
    ours = (*SERVICES, "slurmrestd")
    table = Table(title="gangs")
    for title in ("", "one starts", f"{figures.gangs} wait {figures.waiting_s:g} s"):
        table.add_column(title, justify="left" if not title else "right")
    table.add_row("pods", str(figures.size), str(figures.gangs * figures.size))
    table.add_row("first CREATE to all bound, s", f"{figures.created_to_bound_s:.2f}", "")
    table.add_row("Slurm's start to all bound, s, at most", f"{figures.start_to_bound_s:.2f}", "")
    for part in ours:
        used = (usage.cpu_s.get(part, 0.0) for usage in (figures.started, figures.waited))
        table.add_row(f"CPU s {part}", *(f"{seconds:.2f}" for seconds in used))
    for name in sorted({*figures.started.calls, *figures.waited.calls}):
        made = (usage.calls.get(name, 0) for usage in (figures.started, figures.waited))
        table.add_row(name, *map(str, made))
    console.print(table)
    asked = sum(
        count
        for name, count in figures.started.calls.items()
        if "extender → Slurm" in name and not name.endswith(_FIXED)
    )
    console.print(f"the extender called Slurm {asked} times for the gang that started, polls aside")


if __name__ == "__main__":
    typer.run(main)
