"""`python -m tests.soak.slurm_jobs`: random histories of SlurmJobs, with real scripts and real faults.

Batches of histories share a sandbox and its weather. When all is quiet again, each SlurmJob must have
exactly one Slurm job for its attempt, with the end and the exit code that sacct has; those of earlier
attempts and of deleted objects must be over. Writes its section of docs/reliability.md, and ends with
1 if a contract was broken.
"""

import asyncio
import contextlib
import enum
import random
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import uvloop

from sandbox import nss
from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.values import names
from tests.fault_bench import FaultBench, fault_bench
from tests.servers import fresh_namespace, running_sandbox
from tests.soak import report
from tests.soak.weather import Weather

_AT_A_TIME = 10
_LIVES = (1, 1, 2, 2, 3)
_LONGEST_S = 8.0
"""A history's SlurmJobs are created within so long."""
_LOOKS_EVERY_S = 1.0
_SETTLES_WITHIN_S = 240.0
RULES = [
    {
        "name": "batch",
        "match": {"kinds": ["SlurmJob"]},
        "user": nss.JOB_USER.name,
        "working_directory": "/tmp",  # noqa: S108  # a script's
    },
    {"name": "pods", "user": nss.JOB_USER.name},
]
"""Whose jobs SlurmJobs and pods are."""
_OPTIONS = Options(
    hybrid=True,
    nodes=0,
    accounting=True,
    settings=(
        "slurm_jobs.enabled=true",
        f"policy.rules={RULES}",
    ),
    lease_s=8,
)
_AWAY = (SandboxError, subprocess.TimeoutExpired)
"""What the API and Slurm's commands fail with while something is away."""


class JobFate(enum.Enum):
    """What a SlurmJob is created for."""

    ENDS = "true"
    EXITS = "exit 7"
    DIES = "kill -9 $$"
    IS_CANCELLED = "sleep 600"
    IS_DELETED = "sleep 601"
    IS_SUSPENDED = "sleep 4"
    IS_REQUEUED = "sleep 5"
    IS_ARRAY = 'test "$SLURM_ARRAY_TASK_ID" != 2'


_EXPECTED: Mapping[JobFate, str] = {
    JobFate.ENDS: "Succeeded",
    JobFate.EXITS: "NonZeroExit",
    JobFate.DIES: "Signalled",
    JobFate.IS_CANCELLED: "Cancelled",
    JobFate.IS_SUSPENDED: "Succeeded",
    JobFate.IS_REQUEUED: "Succeeded",
    JobFate.IS_ARRAY: "NonZeroExit",
}


@dataclass(slots=True)
class JobLife:
    """One SlurmJob."""

    name: str
    fate: JobFate
    at_s: float
    is_created: bool = False
    steps: int = 0
    """How much of its fate has been done to it."""


class JobField:
    """One batch of histories: creates SlurmJobs, does to them what is their fate, and compares."""

    def __init__(self, sandbox: Sandbox, namespace: str, lives: Sequence[JobLife]) -> None:
        self._sandbox = sandbox
        self._path = f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{namespace}/slurmjobs"
        self._lives = lives

    async def live(self) -> None:
        """Let every SlurmJob be created and meet its fate; an outage only makes it late."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(_SETTLES_WITHIN_S + _LONGEST_S):
            while True:
                with contextlib.suppress(*_AWAY):
                    objects = await asyncio.to_thread(self._objects)
                    for life in self._lives:
                        if loop.time() - began >= life.at_s:
                            await asyncio.to_thread(self._tend, life, objects.get(life.name))
                    if all(self._is_over(life, objects.get(life.name)) for life in self._lives):
                        return
                await asyncio.sleep(_LOOKS_EVERY_S)

    def _objects(self) -> Mapping[str, Mapping[str, Any]]:
        items = self._sandbox.admin.get(self._path)["items"]
        return {item["metadata"]["name"]: item for item in items}

    def _is_over(self, life: JobLife, found: Mapping[str, Any] | None) -> bool:
        if not life.is_created:
            return False
        if life.fate is JobFate.IS_DELETED:
            return life.steps > 0 and found is None
        status = (found or {}).get("status", {})
        return status.get("phase") in ("Succeeded", "Failed")

    def _tend(self, life: JobLife, found: Mapping[str, Any] | None) -> None:
        if not life.is_created:
            self._create(life)
            return
        if found is None:
            return
        status = found.get("status", {})
        runs, job_id = status.get("phase") == "Running", str(status.get("jobId", ""))
        url = f"{self._path}/{life.name}"
        match life.fate, life.steps:
            case JobFate.IS_CANCELLED, 0 if runs:
                self._sandbox.run("scancel", job_id)
            case JobFate.IS_DELETED, 0 if runs:
                self._sandbox.admin.delete(url)
            case JobFate.IS_REQUEUED, 0 if runs:
                self._sandbox.run("scontrol", "requeue", job_id)
            case JobFate.IS_SUSPENDED, 0 if runs:
                self._sandbox.admin.patch(url, {"spec": {"suspend": True}})
            case JobFate.IS_SUSPENDED, 1:
                self._sandbox.admin.patch(url, {"spec": {"suspend": False}})
            case _:
                return
        life.steps += 1

    def _create(self, life: JobLife) -> None:
        script = f"#!/bin/sh\n#SBATCH --mem=16 --time=30 --output=/dev/null\n{life.fate.value}\n"
        options = {"array": "0-3"} if life.fate is JobFate.IS_ARRAY else {}
        body = {
            "apiVersion": "slurm-bridge.dev/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": life.name},
            "spec": {"script": script, "options": options},
        }
        try:
            self._sandbox.admin.create(self._path, body)
        except ApiError as error:
            if error.status != 409:  # the reply of an earlier one was lost
                raise
        life.is_created = True

    # -- what must hold ---------------------------------------------------------------------------

    async def breaches(self) -> list[str]:
        """Compare with sacct, which may learn of an end a little later."""
        found = ["nothing was compared"]
        for _ in range(30):
            with contextlib.suppress(*_AWAY):
                found = await asyncio.to_thread(self._compared)
                if not found:
                    return []
            await asyncio.sleep(2)
        return found

    def _compared(self) -> list[str]:
        objects = self._objects()
        told: list[str] = []
        for life in self._lives:
            jobs: dict[str, list[tuple[str, str]]] = {}
            for job_id, state, code in self._accounted(life.name):
                jobs.setdefault(job_id.partition("_")[0], []).append((state, code))
            status = objects.get(life.name, {}).get("status", {})
            own = jobs.pop(str(status.get("jobId", "")), [])
            others = [state for rows in jobs.values() for state, _ in rows]
            breaches = list(breaches_of(life, status, own, others))
            told += [f"{life.name} {life.fate.name}: {breach}" for breach in breaches]
        return told

    def _accounted(self, name: str) -> list[list[str]]:
        printed = self._sandbox.run(
            *("sacct", "--noheader", "--parsable2", "--allocations", "--allusers"),
            *("--starttime=now-2hours", f"--name={name}", "--format=jobid,state,exitcode"),
        )
        return [line.split("|") for line in printed.splitlines()]


_BY_SLURM = {"CANCELLED", "TIMEOUT", "PREEMPTED", "DEADLINE"}
"""Then the accounts say 0:0, unless slurmctld was restarted meanwhile: what the script made of the signal may reach them."""


def breaches_of(
    life: JobLife, status: Mapping[str, Any], own: Sequence[tuple[str, str]], others: Sequence[str]
) -> list[str]:
    """Return what does not hold of one SlurmJob.

    Args:
        life: what was done to it.
        status: what it says of itself; {} if it is gone.
        own: state and exit code of its job, or of the tasks of its array, as sacct has them.
        others: the states of all other jobs of its name.
    """
    found: list[str] = []
    live = [state for state in others if not state.startswith("CANCELLED")]
    if live:
        found.append(f"a second job: {live}")
    if life.fate is JobFate.IS_DELETED:
        return found + ([f"{len(others)} jobs"] if len(others) > 1 else [])
    if len(others) >= max(status.get("attempt", 0), 1):
        found.append(f"{len(others)} further jobs in {status.get('attempt')} attempts")
    if not own:
        return [*found, f"sacct has no job {status.get('jobId')}"]
    ends = {state.split()[0] for state, _ in own}
    codes = [[int(part) for part in code.split(":")] for _, code in own]
    is_good = ends == {"COMPLETED"}
    if is_good != (status.get("phase") == "Succeeded"):
        found.append(f"sacct says {ends}, its status {status.get('phase')}")
    worst = (max(code for code, _ in codes), max(signal for _, signal in codes))
    told = (status.get("exitCode"), status.get("signal", 0) or 0)
    if worst != told and (told != (0, 0) or not ends <= _BY_SLURM):
        found.append(
            f"sacct says {worst}, its status {status.get('exitCode')}, {status.get('signal')}"
        )
    if status.get("reason") != _EXPECTED[life.fate]:
        found.append(f"it ended as {status.get('reason')}, expected {_EXPECTED[life.fate]}")
    return found


async def live(bench: FaultBench, namespace: str, *, seed: int, histories: int) -> dict[str, Any]:
    """Let a batch of histories happen, calm down, and compare."""
    dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
    lives = [
        JobLife(
            f"s{seed}-{history}-{number}",
            dice.choice(tuple(JobFate)),
            dice.uniform(0, _LONGEST_S),
        )
        for history in range(histories)
        for number in range(dice.choice(_LIVES))
    ]
    weather, over = Weather(bench, random.Random(seed)), asyncio.Event()  # noqa: S311  # likewise
    field = JobField(bench.sandbox, namespace, lives)
    breaches: list[str] = []
    async with asyncio.TaskGroup() as group:
        storm = group.create_task(weather.changeable(over, (0.5, 2.5)))
        living = group.create_task(_settled(field))
        await asyncio.sleep(_LONGEST_S + dice.uniform(5, 15))
        over.set()
        await storm
        breaches += await living
    breaches += await field.breaches()
    return {
        "lives": Counter(life.fate.name for life in lives),
        "story": weather.story,
        "breaches": [f"seed {seed}: {breach}" for breach in breaches],
    }


async def _settled(field: JobField) -> list[str]:
    try:
        await field.live()
    except TimeoutError:
        return ["not everything came to an end"]
    return []


def main(
    *,
    histories: Annotated[int, typer.Option(help="How many.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
) -> None:
    """Find out whether faults can break what SlurmJobs promise."""
    found: dict[str, Any] = {
        **report.about(seed),
        "done": 0,
        "lives": Counter(),
        "faults": 0,
        "breaches": [],
    }
    with running_sandbox(_OPTIONS) as sandbox, fault_bench(sandbox) as bench:
        while found["done"] < histories:
            count = min(_AT_A_TIME, histories - found["done"])
            with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace:
                of_batch = 1000 * seed + found["done"] // _AT_A_TIME
                batch = uvloop.run(live(bench, namespace, seed=of_batch, histories=count))
            found["done"] += count
            found["lives"] += batch["lives"]
            found["faults"] += len(batch["story"])
            found["breaches"] += batch["breaches"]
            typer.echo(f"{found['done']} histories, {len(found['breaches'])} contracts broken")
            for line in (*batch["breaches"], *(batch["story"] if batch["breaches"] else ())):
                typer.echo(f"  {line}")
            report.keep("slurm-jobs", found)
    raise typer.Exit(1 if found["breaches"] else 0)


if __name__ == "__main__":
    typer.run(main)
