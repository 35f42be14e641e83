"""`python -m benchmarks.client`: what slurm-client costs at many jobs, and what it costs Slurm: lists, streams, watches."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.meter import cpu_s
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Client, Event, Model, TokenFile

_AT_ONCE = 8
_CHANGES_PER_S = 10
_TIMEOUT_S = 300.0
_PARTS = ("slurmctld", "slurmrestd")


class _EventCount:
    """Events, counted."""

    count = 0


class Row(Model, frozen=True):
    """Three fields, as a program that looks at a queue needs."""

    job_id: int
    user_name: str = ""
    job_state: frozenset[str] = frozenset()


def main(
    *,
    jobs: Annotated[int, typer.Option(help="Jobs in the queue.", min=100)] = 10_000,
    seconds: Annotated[float, typer.Option(help="Of each watch.", min=1)] = 20,
) -> None:
    """Measure on a sandbox of its own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must get in
    try:
        options = Options(kubernetes=False, bridge=False)
        with Sandbox.up(folder, options) as sandbox:
            asyncio.run(_measure(sandbox, jobs, seconds, Console()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(sandbox: Sandbox, jobs: int, seconds: float, console: Console) -> None:
    token = TokenFile(sandbox.token_file)
    async with Client(sandbox.slurmrestd_url, token=token, timeout_s=_TIMEOUT_S) as slurm:
        began = time.perf_counter()
        await asyncio.gather(*(_submit(slurm, jobs // _AT_ONCE) for _ in range(_AT_ONCE)))
        console.print(f"{jobs} jobs submitted in {time.perf_counter() - began:.1f} s")

        began, began_cpu_s = time.perf_counter(), time.process_time()
        rows = await slurm.jobs.list(as_=Row)
        console.print(f"list, three fields: {_spent(began, began_cpu_s)}")

        began, began_cpu_s = time.perf_counter(), time.process_time()
        streamed = [row.job_id async for row in slurm.jobs.iter(as_=Row)]
        console.print(f"stream, three fields: {_spent(began, began_cpu_s)}, {len(streamed)} jobs")

        left = [row.job_id for row in rows]
        for interval_s in (1.0, 5.0):
            changed = [left.pop() for _ in range(int((seconds + interval_s) * _CHANGES_PER_S))]
            spent, changes = await watched(sandbox, slurm, changed, interval_s, seconds)
            shares = ", ".join(f"{part} {100 * s / seconds:.1f} %" for part, s in spent.items())
            console.print(
                f"watch every {interval_s:g} s, {changes} changes in {seconds:g} s: {shares} of a core"
            )


async def _submit(slurm: Client, count: int) -> None:
    for _ in range(count):
        await slurm.jobs.submit(name="load", flags=["EXTERNAL_JOB"], hold=True, minimum_nodes=1)


async def watched(
    sandbox: Sandbox, slurm: Client, changed: Sequence[int], interval_s: float, seconds: float
) -> tuple[Mapping[str, float], int]:
    """Watch while jobs are cancelled by scancel, whose CPU is not ours.

    Returns:
        CPU seconds by part, and how many changes were seen.
    """
    watching = slurm.jobs.watch(as_=Row, interval_s=interval_s)
    await anext(watching)
    async with _consumed(watching) as seen, asyncio.TaskGroup() as group:
        await asyncio.sleep(interval_s)  # the first picture has been told
        seen.count = 0
        before = _cpu(sandbox)
        group.create_task(_cancel(sandbox, changed[: int(seconds * _CHANGES_PER_S)]))
        await asyncio.sleep(seconds)
        spent = {part: now - before[part] for part, now in _cpu(sandbox).items()}
    return spent, seen.count


@asynccontextmanager
async def _consumed(watching: AsyncIterator[Event[Row]]) -> AsyncIterator[_EventCount]:
    seen = _EventCount()

    async def consume() -> None:
        async for _ in watching:
            seen.count += 1

    async with asyncio.TaskGroup() as group:
        consuming = group.create_task(consume())
        yield seen
        consuming.cancel()


async def _cancel(sandbox: Sandbox, job_ids: Sequence[int]) -> None:
    """One after the other, in a shell: its processes are not counted."""
    pause_s = 1 / _CHANGES_PER_S
    commands = "; ".join(
        f"{sandbox.instance.bin / 'scancel'} {job_id}; sleep {pause_s}" for job_id in job_ids
    )
    process = await asyncio.create_subprocess_exec("sh", "-c", commands, env=sandbox.env)
    await process.wait()


def _cpu(sandbox: Sandbox) -> dict[str, float]:
    status = sandbox.status()
    parts = {part: cpu_s(pid) for part in _PARTS if (pid := status[part].pid)}
    return {"client": time.process_time(), **parts}


def _spent(began: float, began_cpu_s: float) -> str:
    return f"{time.perf_counter() - began:.1f} s, of it {time.process_time() - began_cpu_s:.2f} s of the client's CPU"


if __name__ == "__main__":
    typer.run(main)
