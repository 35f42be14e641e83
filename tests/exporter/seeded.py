"""A seeded queue, seen at once by an exporter and by Slurm's own commands: while its jobs run, and after they ended."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox import assets
from sandbox.client import Sandbox
from slurmclient import Client, TokenFile
from tests.exporter import commands_detail, commands_say, sdiag_names
from tests.exporter.commands_detail import Fields
from tests.exporter.conftest import Exporter
from tests.exporter.expected import Labels, Seen
from tests.exporter.records import samples

Page = Mapping[str, Mapping[Labels, float]]
NAME_SETS = ("own", "slinky", "native", "vpenso")
_SMALL = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
_SLOW = ("nodes", "jobs", "partitions", "licenses", "reservations", "shares", "accounting")
_SACCT = (
    "JobID,Account,Partition,State,ElapsedRaw,AllocTRES,Eligible,Start,End,TimelimitRaw,TotalCPU,MaxRSS,"
    "Restarts,Submit"
)
_QOS = (
    "GrpTRES=cpu=100,mem=10G", "GrpJobs=50", "GrpSubmitJobs=60", "GrpWall=1000", "MaxWall=120",
    "MaxJobsPerUser=20", "MaxJobsPerAccount=21", "MaxSubmitJobsPerUser=30", "MaxSubmitJobsPerAccount=31",
    "MaxTRESPerUser=cpu=64", "MaxTRESPerAccount=cpu=65", "MaxTRESPerJob=cpu=32,gres/gpu=2",
)  # fmt: skip
_ACCOUNT = (
    "GrpTRES=cpu=90,mem=9G", "GrpJobs=40", "GrpSubmitJobs=41", "GrpWall=1001", "MaxWall=121",
    "MaxJobs=42", "MaxSubmitJobs=43", "MaxTRES=cpu=33",
)  # fmt: skip

_STEPS = """
insert into sandbox_step_table (job_db_inx, exit_code, id_step, nodelist, nodes_alloc, node_inx, state, step_name,
 task_cnt, task_dist, time_start, time_end, user_sec, user_usec, sys_sec, sys_usec, tres_alloc, tres_usage_in_max)
select job_db_inx, 0, n, 'node-0', 1, '0', 3, 'work', 1, 0, time_start, time_start + 1,
 n, 500000, 0, 250000, '1=1,2=100,4=1', concat('1=1750,2=', 20971520 * (1 + n))
from sandbox_job_table, (select 0 as n union select 1) as steps where id_job = @job
"""


@dataclass(kw_only=True)
class Evidence:
    """What the exporter and the commands said."""

    pages: Mapping[str, Page]
    """The name sets while jobs ran."""
    ended: Page
    """The own names after all of them had ended."""
    at_s: tuple[float, float]
    """The moments between which the first pages were made."""
    seen: Seen
    jobs: Sequence[Fields]
    nodes: Sequence[Fields]
    partitions: Sequence[Fields]
    licenses: Sequence[Fields]
    reservations: Sequence[Fields]
    ping: str
    database_ping: str
    release: str
    limits: Mapping[str, Sequence[Fields]]
    limits_used: Mapping[tuple[str, ...], Mapping[tuple[str, str], float]]
    shares: Sequence[Fields]
    used_shares: Sequence[Fields]
    """After the jobs had ended: then they are charged."""
    records: Sequence[Fields]
    """What sacct says of the seeded jobs and their steps."""
    statistics: Mapping[str, Mapping[str, object]]
    """By name set the families that lay outside of what sdiag said before and after."""
    rpcs: tuple[Any, Page, Any]
    """sdiag's RPCs before, the page, and after."""
    dbd: tuple[Any, Any]
    """slurmdbd's statistics before and after."""


def gathered(cluster: Sandbox, exporter: Exporter) -> Evidence:
    """Seed the queue, compare, end the jobs, compare again."""
    _limit(cluster)
    dbd_before = commands_detail.dbd_statistics(cluster)
    jobs = asyncio.run(_seed(cluster))
    exporter.until(lambda: _states(cluster).count("RUNNING") == 4, 60)
    _read_again(exporter, _SLOW)
    began_s = time.time()  # noqa: TID251  # Slurm's clock is the wall's
    pages = {names: samples(exporter.page(f"/metrics/{names}").content) for names in NAME_SETS}
    dbd_after = commands_detail.dbd_statistics(cluster)
    parts: dict[str, Any] = {
        "seen": Seen(cluster),
        "jobs": commands_detail.show(cluster, "job"),
        "nodes": commands_detail.show(cluster, "node"),
        "partitions": commands_detail.show(cluster, "partition"),
        "licenses": commands_detail.show(cluster, "lic"),
        "reservations": commands_detail.show(cluster, "res"),
        "ping": cluster.run("scontrol", "ping"),
        "database_ping": cluster.run("sacctmgr", "ping"),
        "release": cluster.run("sinfo", "--version").split()[1],
        "limits": {
            kind: commands_detail.table(cluster, "sacctmgr", "show", kind, "--parsable2")
            for kind in ("qos", "assoc")
        },
        "limits_used": commands_detail.limits_used(cluster),
        "shares": _sshare(cluster),
    }
    statistics, rpcs = _statistics(cluster, exporter)
    _add_steps(cluster, jobs[:2])
    cluster.run("scancel", "--full", *map(str, jobs))
    exporter.until(lambda: not {"RUNNING", "PENDING"} & set(_states(cluster)), 60)
    records: Sequence[Fields] = ()

    def are_recorded() -> bool:
        nonlocal records
        records = _records(cluster, jobs)
        return bool(records) and all(row["End"] != "Unknown" for row in records)

    exporter.until(are_recorded, 60)
    _read_again(exporter, ("jobs", "shares"))
    exporter.until(lambda: exporter.value("slurm_exporter_efficiency_skipped_total") == 2)
    used_shares = _sshare(cluster)
    _read_again(exporter, ("shares",))
    return Evidence(
        pages=pages,
        ended=samples(exporter.page("/metrics/own").content),
        at_s=(began_s - 2, began_s + 2),
        used_shares=used_shares,
        records=records,
        statistics=statistics,
        rpcs=rpcs,
        dbd=(dbd_before, dbd_after),
        **parts,
    )


def _limit(cluster: Sandbox) -> None:
    for command in (
        ("add", "qos", "small", "set", *_QOS),
        ("add", "account", "physics", "parent=kubernetes"),
        ("add", "user", "alice", "account=physics"),
        ("modify", "user", "root", "set", "qos+=small"),
        ("modify", "account", "physics", "set", *_ACCOUNT),
    ):
        cluster.run("sacctmgr", "-i", *command)


async def _seed(cluster: Sandbox) -> Sequence[int]:
    """Four jobs that run, then those that wait or have ended; the first two get steps later."""
    token = TokenFile(cluster.token_file)
    async with Client(cluster.slurmrestd_url, token=token) as slurm:
        alice = slurm.as_user("alice")
        await slurm.nodes.drain("node-3", "fan")
        start = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251  # Slurm's clock is the wall's
        await slurm.reservations.save(
            "maint", start_time=start, duration=60, node_list=["node-2"], users=["root"]
        )

        async def submit(client: Client, **fields: Any) -> int:
            whole = {"name": "t", "flags": ["EXTERNAL_JOB"], "time_limit": 30, **_SMALL, **fields}
            return (await client.jobs.submit(**whole)).job_id

        first = await submit(slurm, tres_per_node="gres/gpu:2")
        jobs = [
            first,
            await submit(alice, cpus_per_task=3, licenses="matlab:3"),
            await submit(slurm, cpus_per_task=2, qos="small", partition="second", time_limit=10),
            await submit(alice, account="physics"),
            await submit(alice, partition="slurm-bridge,second", hold=True, minimum_nodes=2),
            await submit(slurm, dependency=f"afterok:{first}"),
            await submit(slurm, minimum_nodes=4),
            (await slurm.jobs.submit("#!/bin/sh\n", name="array", array="0-4", hold=True, **_SMALL)).job_id,  # type: ignore[arg-type]  # a field of any name
            await submit(slurm, hold=True),
        ]  # fmt: skip
        await slurm.jobs.cancel(jobs[-1])
    return jobs


def _states(cluster: Sandbox) -> Sequence[str]:
    return [job.state for job in commands_say.squeue(cluster)]


def _sshare(cluster: Sandbox) -> Sequence[Fields]:
    columns = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,TRESRunMins,GrpTRESRaw"
    return commands_detail.table(cluster, "sshare", "--all", "--parsable2", "-o", columns)


def _records(cluster: Sandbox, jobs: Sequence[int]) -> Sequence[Fields]:
    ids = ",".join(map(str, jobs))
    return commands_detail.table(cluster, "sacct", "-P", "--array", "-o", _SACCT, "-j", ids)


def _read_again(exporter: Exporter, sources: Sequence[str]) -> None:
    """Return after a reading of each source that began after this call."""
    before = {source: exporter.reads(source) for source in sources}
    exporter.until(lambda: all(exporter.reads(s) >= n + 2 for s, n in before.items()), 60)


def _statistics(
    cluster: Sandbox, exporter: Exporter
) -> tuple[Mapping[str, Mapping[str, object]], tuple[Any, Page, Any]]:
    """Compare with sdiag before and after until each family was equal, or between, once."""
    wrong: dict[str, dict[str, object]] = {
        names: dict.fromkeys(sdiag_names.series(names)) for names in NAME_SETS
    }
    found: list[tuple[Any, Page, Any]] = []

    def compare() -> bool:
        before, rpcs_before = commands_detail.sdiag(cluster)
        _read_again(exporter, ("scheduler",))
        pages = {names: samples(exporter.page(f"/metrics/{names}").content) for names in NAME_SETS}
        after, rpcs_after = commands_detail.sdiag(cluster)
        found[:] = [(rpcs_before, pages["own"], rpcs_after)]
        for names, families in wrong.items():
            for family in list(families):
                families[family] = _outside(names, family, pages[names], before, after)
                if families[family] is None:
                    del families[family]
        return not any(wrong.values())

    _tries(compare, 40)
    return wrong, found[0]


def _outside(
    names: str, family: str, page: Page, before: Mapping[str, float], after: Mapping[str, float]
) -> object:
    """What is wrong with a family of slurmctld's statistics; None if nothing is."""
    series = sdiag_names.series(names)[family]
    served = page.get(family, {})  # nothing while the reading is stale, as on a busy machine
    ours = {dict(labels).get("reason", ""): value for labels, value in served.items()}
    if ours.keys() != series.keys():
        return {"ours": ours, "sdiag's": series}
    for reason, words in series.items():
        low, high = sorted((before[words], after[words]))
        if not low - 0.5 <= ours[reason] / sdiag_names.unit(names, family, words) <= high + 0.5:
            return {words: (before[words], after[words]), "ours": ours[reason]}
    return None


def _tries(condition: Callable[[], bool], most: int) -> None:
    for _ in range(most):
        if condition():
            return


def _add_steps(cluster: Sandbox, jobs: Sequence[int]) -> None:
    """Give running jobs steps with usage, as slurmd would: nothing else makes some in this sandbox."""
    for job in jobs:
        _sql(cluster, f"set @job = {job}; {_STEPS}")


def _sql(cluster: Sandbox, statement: str) -> None:
    program = assets.resolve(assets.AssetName.SLURM, report=lambda _: None).bin / "mariadb"
    port = cluster.instance.ports["mariadb"]
    subprocess.run(
        (str(program), "--no-defaults", "--host=127.0.0.1", f"--port={port}", "--user=slurm", "slurm_acct"),
        input=statement,
        text=True,
        check=True,
        capture_output=True,
    )  # fmt: skip
