"""What each version of the API says, what `--check` says, and counters against sacct."""

import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmclient import Client
from slurmexporter.families import catalogue
from tests.exporter import commands_say
from tests.exporter.conftest import command, environment, running_exporter
from tests.exporter.expected import (
    Labels,
    Seen,
)
from tests.exporter.records import samples
from tests.servers import until


@pytest.fixture
async def queue(cluster: Sandbox, slurm: Client) -> AsyncIterator[Seen]:
    """Running, waiting, held, dependent, ended jobs; an array; a drained node."""
    small = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}

    async def submit(client: Client, **fields: Any) -> int:
        answer = await client.jobs.submit(
            flags=["EXTERNAL_JOB"], **{"name": "t", **small, **fields}
        )
        return answer.job_id

    alice = slurm.as_user("alice")
    await slurm.nodes.drain("node-3", "fan")
    first = await submit(slurm, tres_per_node="gres/gpu:2", time_limit=30)
    await submit(alice, cpus_per_task=3, licenses="matlab:3")
    await submit(alice, partition="slurm-bridge,second", hold=True, minimum_nodes=2)
    await submit(slurm, dependency=f"afterok:{first}")
    await slurm.jobs.submit("#!/bin/sh\n", name="array", array="0-4", hold=True, **small)  # type: ignore[arg-type]  # a field of any name
    await slurm.jobs.cancel(await submit(slurm, hold=True))
    await until(lambda: _running(cluster) >= 2, 60, sandbox=cluster)
    yield Seen(cluster)
    await slurm.nodes.resume("node-3")


def _running(cluster: Sandbox) -> int:
    return sum(job.state == "RUNNING" for job in commands_say.squeue(cluster))


def page(cluster: Sandbox, names: str, *more: str) -> Mapping[str, Mapping[Labels, float]]:
    done = subprocess.run(
        command("--once", f"--names={names}", *more),
        env=environment(cluster),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return samples(done.stdout)


async def test_each_version_of_the_api_says_the_same(cluster: Sandbox, queue: Seen) -> None:
    names = [one.name for part in catalogue.NAMES["native"][:3] for one in part.families]
    now = page(cluster, "native")
    assert queue.jobs
    for api in ("v0.0.42", "v0.0.43", "v0.0.44"):
        then = page(cluster, "native", f"--api={api}")
        # Slurm has the state EXTERNAL since v0.0.44.
        unknown = "external" if api < "v0.0.44" else "nothing"
        assert [] == [n for n in names if now[n] != then[n] and not n.endswith(unknown)], api


def test_the_check_says_what_works(cluster: Sandbox) -> None:
    def check(**environ: str) -> tuple[int, str]:
        done = subprocess.run(
            command("--check"),
            env={**environment(cluster), **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout

    code, said = check()
    assert (0, True) == (code, "nodes: 4 read" in said), said
    code, said = check(SLURM_JWT="nonsense")
    assert (1, True) == (code, "FAIL  jobs" in said), said


async def test_the_counters_are_what_sacct_says(cluster: Sandbox, slurm: Client, port: int) -> None:
    small = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
    with running_exporter(cluster, port=port) as exporter:
        jobs = [
            (await slurm.jobs.submit(flags=["EXTERNAL_JOB"], cpus_per_task=n, **small)).job_id  # type: ignore[arg-type]  # a field of any name
            for n in (1, 2, 3)
        ]
        running = {"state": "RUNNING"}
        exporter.until(lambda: exporter.value("slurm_jobs_by_state", **running) == 3)
        exporter.until(
            lambda: (
                (
                    exporter.value(
                        "slurm_allocated_cpu_seconds_total",
                        partition="slurm-bridge",
                        account="root",
                    )
                    or 0
                )
                > 8
            )
        )
        await slurm.jobs.cancel_many(*jobs)
        where = {"partition": "slurm-bridge", "account": "root"}
        ended = {**where, "state": "CANCELLED"}
        exporter.until(lambda: exporter.value("slurm_job_ends_total", **ended) == 3)

        def records() -> Sequence[Mapping[str, str]]:
            found = [row for row in commands_say.sacct(cluster) if row["JobID"] in map(str, jobs)]
            return found if all(row["End"] != "Unknown" for row in found) else []

        exporter.until(lambda: len(records()) == 3)
        assert sum(float(row["CPUTimeRAW"]) for row in records()) == exporter.value(
            "slurm_allocated_cpu_seconds_total", **where
        )
