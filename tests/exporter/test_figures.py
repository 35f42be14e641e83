"""Every family of the four name sets against squeue, sinfo, sdiag, sshare and sacct on a seeded queue.

A family is equal to what a command says, or it is listed below with the reason why it cannot be.
"""

import re
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmclient import Client
from slurmexporter.families import catalogue, scheduler_figures
from slurmexporter.readings.states import JOB_FLAGS
from tests.exporter import commands_say
from tests.exporter.commands_say import MIB, SinfoRow
from tests.exporter.conftest import command, environment, running_exporter
from tests.exporter.expected import (
    Expected,
    Labels,
    Seen,
    differences,
    job_figure,
    node_figure,
    of_jobs,
    of_nodes,
    statistics,
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


async def test_the_families_of_slurm_exporter(cluster: Sandbox, queue: Seen) -> None:
    pages = []

    def read() -> Any:
        pages.append(page(cluster, "slinky"))
        return pages[-1]

    assert {} == statistics(scheduler_figures.SLINKY, cluster, read)
    names = [one.name for part in catalogue.NAMES["slinky"] for one in part.families]
    assert 185 == len(names)
    assert set(names) == pages[0].keys(), "all of them are served"
    rest = set(names) - scheduler_figures.SLINKY.keys()

    def expected(name: str) -> Expected | None:
        return of_jobs(name, queue, arrays_are_one=True) or of_nodes(name, queue)

    assert {} == differences(pages[0], sorted(rest), expected)


async def test_the_families_of_slurmctld(cluster: Sandbox, queue: Seen) -> None:
    pages = []

    def read() -> Any:
        pages.append(page(cluster, "native"))
        return pages[-1]

    assert {} == statistics(scheduler_figures.NATIVE, cluster, read)
    names = [one.name for part in catalogue.NAMES["native"] for one in part.families]
    assert set(names) == pages[0].keys(), "all of them are served"
    rest = set(names) - scheduler_figures.NATIVE.keys()

    def expected(name: str) -> Expected | None:
        return of_jobs(name, queue, arrays_are_one=False) or of_nodes(name, queue)

    assert {} == differences(pages[0], sorted(rest), expected)


async def test_the_families_of_vpenso(cluster: Sandbox, queue: Seen) -> None:
    found = page(cluster, "vpenso")
    names = [one.name for part in catalogue.NAMES["vpenso"] for one in part.families]
    assert set(names) == found.keys(), "all of them are served"
    unsaid = {name for name in names if name.startswith("slurm_scheduler_")}

    def expected(name: str) -> Expected | None:
        if match := re.fullmatch(r"slurm_(account|user)_(?:jobs_)?(\w+)", name):
            if match[2] == "fairshare":
                return None
            groups = queue.by(match[1])
            return {
                labels: job_figure(match[2], jobs, arrays_are_one=False) or 0
                for labels, jobs in groups
            }
        if match := re.fullmatch(r"slurm_queue_(\w+)", name):
            return {(): job_figure(match[1], queue.jobs, arrays_are_one=False) or 0}
        if name == "slurm_partition_jobs_pending":
            return of_jobs(name, queue, arrays_are_one=False)
        if match := re.fullmatch(r"slurm_(?:partition_)?(c|g)pus_(\w+)", name):
            label = "partition" if "partition" in name else ""
            figure = _gpus if match[1] == "g" else _cpus
            return {labels: figure(match[2], nodes) for labels, nodes in queue.nodes_by(label)}
        if match := re.fullmatch(r"slurm_node_(cpu|mem)_(\w+)", name):
            return {_status(node): _node(match[1], match[2], node) for node in queue.nodes}
        if match := re.fullmatch(r"slurm_nodes_(\w+)", name):
            apart = {"drain", "maint", "reserved", "fail"}
            plain = [node for node in queue.nodes if not node.states & apart]
            nodes = plain if match[1] in {"alloc", "idle", "mix"} else queue.nodes
            return {(): node_figure(match[1], nodes) or 0}
        return None

    assert {} == differences(found, names, expected, unsaid={*unsaid, "slurm_account_fairshare"})
    shares = commands_say.sshare(cluster)
    assert {account for account, user in shares if not user} == {
        dict(labels)["account"] for labels in found["slurm_account_fairshare"]
    }


def _cpus(what: str, nodes: Sequence[SinfoRow]) -> float:
    column = {"alloc": "allocated", "allocated": "allocated", "total": "cpus"}.get(what, what)
    return float(sum(getattr(node, column) for node in nodes))


def _gpus(what: str, nodes: Sequence[SinfoRow]) -> float:
    total, used = sum(n.gpus for n in nodes), sum(n.allocated_gpus for n in nodes)
    figures = {"total": total, "alloc": used, "idle": total - used, "utilization": used / total}
    return figures[what]


def _node(kind: str, what: str, node: SinfoRow) -> float:
    if kind == "cpu":
        return _cpus(what, [node])
    return (node.memory if what == "total" else node.allocated_memory) // MIB


def _status(node: SinfoRow) -> Labels:
    if "drain" in node.states:
        status = "draining" if node.states & {"allocated", "mixed"} else "drained"
    else:
        (status,) = node.states & {"allocated", "mixed", "idle"}
    return ("node", node.name), ("status", status)


async def test_the_own_families(cluster: Sandbox, queue: Seen) -> None:
    found = page(cluster, "own")

    def by_state(label: str) -> Expected:
        return {
            tuple(sorted((*labels, ("state", state)))): sum(j.state == state for j in jobs)
            for labels, jobs in queue.by(label)
            for state in {job.state for job in jobs}
        }

    def amounts(label: str, resource: str) -> Expected:
        column = {"cpus": "cpu", "gpus": "gres/gpu", "memory_bytes": "mem", "nodes": "node"}[
            resource
        ]
        return {
            labels: sum(job.tres.get(column, 0) for job in jobs if job.holds)
            for labels, jobs in queue.by(label)
        }

    for label, prefix in (
        ("", ""),
        ("partition", "partition_"),
        ("account", "account_"),
        ("user", "user_"),
        ("qos", "qos_"),
    ):
        ours = {labels: n for labels, n in found[f"slurm_{prefix}jobs_by_state"].items() if n}
        assert by_state(label) == ours, prefix
        for resource in ("cpus", "gpus", "memory_bytes", "nodes"):
            name = f"slurm_{prefix.replace('partition_', '')}allocated_{resource}"
            if prefix:
                assert amounts(label, resource) == found[name], name


async def test_what_waits_and_what_nodes_have(cluster: Sandbox, queue: Seen) -> None:
    found = page(cluster, "own")
    reasons: dict[Labels, float] = {}
    for (where,), jobs in queue.by("partition"):
        for job in jobs:
            if job.state == "PENDING":
                why = (where, ("reason", job.reason))
                reasons[why] = reasons.get(why, 0) + 1
    assert reasons == found["slurm_pending_jobs"]
    assert {(): sum(job.is_held for job in queue.jobs)} == found["slurm_jobs_held"]
    assert all(not n for flag, n in found["slurm_jobs_by_flag"].items() if flag[0][1] in JOB_FLAGS)
    assert {(("license", "matlab"),): 3.0} == found["slurm_license_used"]
    assert {(("license", "matlab"),): 10.0} == found["slurm_license_total"]
    drained = {(("node", "node-3"), ("reason", "fan"), ("user", "root")): 1.0}
    assert drained == found["slurm_node_reason_info"]
    key: Labels
    for node in queue.nodes:
        key = (("node", node.name),)
        assert (node.cpus, node.allocated, node.memory, node.allocated_memory) == tuple(
            found[f"slurm_node_{name}"][key]
            for name in ("cpu_size", "cpu_allocated", "memory_size_bytes", "memory_allocated_bytes")
        )
    up = {dict(labels)["partition"]: n for labels, n in found["slurm_partition_up"].items()}
    assert {"slurm-bridge": 1, "second": 1, "third": 0} == up
    for (account, user), row in commands_say.sshare(cluster).items():
        key = tuple(sorted({"account": account, "user": user, "partition": ""}.items()))
        if row["NormShares"]:
            assert float(row["NormShares"]) == pytest.approx(
                found["slurm_share_norm"][key], abs=1e-5
            )


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
