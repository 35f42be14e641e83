"""The dashboards: a real Prometheus that scrapes a real Slurm's exporter has data for every query."""

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
import pytest

from docs.generate import exporter_dashboards
from sandbox import assets
from sandbox.client import Sandbox
from slurmclient import Client
from slurmexporter.families import vpenso
from tests.exporter.conftest import Exporter, running_exporter
from tests.prometheus import scraping

DASHBOARD_4323: Final = (
    "slurm_cpus_total", "slurm_cpus_alloc", "slurm_cpus_idle", "slurm_cpus_other", "slurm_gpus_total",
    "slurm_gpus_alloc", "slurm_gpus_idle", "slurm_gpus_other", "slurm_nodes_alloc", "slurm_nodes_comp",
    "slurm_nodes_idle", "-slurm_nodes_down", "-slurm_nodes_drain", "-slurm_nodes_err", "-slurm_nodes_fail",
    "-slurm_nodes_maint",
    ("slurm_nodes_alloc + slurm_nodes_down + slurm_nodes_drain + slurm_nodes_idle + slurm_nodes_mix"
    " + slurm_nodes_comp + slurm_nodes_maint"),
    "slurm_queue_completing", "slurm_queue_running", "slurm_queue_pending", "slurm_queue_completed",
    "-slurm_queue_cancelled", "-slurm_queue_timeout", "-slurm_queue_failed", "-slurm_queue_node_fail",
    "-slurm_queue_suspended", "-slurm_queue_preempted", "slurm_scheduler_threads",
    "slurm_scheduler_queue_size", "slurm_scheduler_backfill_last_cycle",
    "slurm_scheduler_backfill_mean_cycle", "slurm_scheduler_backfill_depth_mean",
    "slurm_scheduler_last_cycle", "slurm_scheduler_mean_cycle",
)  # fmt: skip
"""The queries of Grafana dashboard 4323 (as its JSON with gnetId 4323 has them in NVIDIA/deepops)."""
VPENSO: Final[Mapping[tuple[str, ...], str]] = {
    (): "cpus_{alloc,idle,other,total} gpus_{alloc,idle,other,total,utilization}"
    " nodes_{alloc,comp,down,drain,err,fail,idle,maint,mix,resv}"
    " queue_{pending,pending_dependency,running,suspended,cancelled,completing,completed,configuring,failed,"
    "timeout,preempted,node_fail} scheduler_{threads,queue_size,dbd_queue_size,last_cycle,mean_cycle,"
    "cycle_per_minute,backfill_last_cycle,backfill_mean_cycle,backfill_depth_mean,"
    "backfilled_jobs_since_start_total,backfilled_jobs_since_cycle_total,backfilled_heterogeneous_total}",
    ("account",): "account_{jobs_pending,jobs_running,cpus_running,jobs_suspended,fairshare}",
    ("user",): "user_{jobs_pending,jobs_running,cpus_running,jobs_suspended}",
    ("partition",): "partition_{cpus_allocated,cpus_idle,cpus_other,cpus_total,jobs_pending}",
    ("node", "status"): "node_{cpu_alloc,cpu_idle,cpu_other,cpu_total,mem_alloc,mem_total}",
}
"""The names and labels of vpenso's prometheus-slurm-exporter, which dashboard 23350 uses as well."""


def test_the_dashboards_are_what_their_program_writes() -> None:
    made = exporter_dashboards.made()
    assert 7 == len(made)
    assert made == {path: path.read_text() for path in made}, "make docs"


@contextmanager
def running_prometheus(target: str, folder: Path, page: str = "/metrics") -> Iterator[str]:
    """A Prometheus that scrapes an exporter twice a second."""
    with assets.shown(sys.stderr) as report:
        program = assets.resolve(assets.AssetName.PROMETHEUS, report=report).bin / "prometheus"
    scrape = {
        "job_name": "slurm",
        "metrics_path": page,
        "static_configs": [{"targets": [target]}],
    }
    with scraping(program, [scrape], folder) as url:
        yield url


def has_data(url: str, query: str) -> bool:
    try:
        answer = httpx.get(f"{url}/api/v1/query", params={"query": query}, trust_env=False)
    except httpx.TransportError:
        return False
    assert answer.status_code != 400, f"{query}: {answer.text}"
    return answer.is_success and bool(answer.json()["data"]["result"])


@pytest.fixture
async def busy(cluster: Sandbox, slurm: Client) -> AsyncIterator[int]:
    """A running job, waiting ones, a drained node, a reservation; returns the running job's id."""
    small = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
    await slurm.nodes.drain("node-3", "fan")
    start = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251  # Slurm's clock is the wall's
    await slurm.reservations.save(
        "maint", start_time=start, duration=60, node_list=["node-2"], users=["root"]
    )
    answer = await slurm.jobs.submit(
        flags=["EXTERNAL_JOB"],
        tres_per_node="gres/gpu:1",
        licenses="matlab:1",
        time_limit=30,
        **small,  # type: ignore[arg-type]  # a field of any name
    )
    await slurm.jobs.submit(flags=["EXTERNAL_JOB"], hold=True, **small)  # type: ignore[arg-type]  # see above
    yield answer.job_id
    await slurm.reservations.delete("maint")
    await slurm.nodes.resume("node-3")


async def test_every_query_has_data(
    cluster: Sandbox, slurm: Client, busy: int, port: int, tmp_path: Path
) -> None:
    arguments = ("--job-info", "--names=own")
    with (
        running_exporter(cluster, *arguments, port=port) as exporter,
        running_prometheus(f"127.0.0.1:{port}", tmp_path) as url,
    ):
        exporter.until(lambda: has_data(url, "slurm_up == 1"))
        for _ in range(3):
            await _run_a_job(slurm, exporter)
        queries = [
            query.expression.replace("$__rate_interval", "1m").replace("$job", str(busy))
            for _, rows, _ in exporter_dashboards.DASHBOARDS.values()
            for row in rows
            for panel in row.panels
            for query in panel.queries
        ]
        silent = list(queries)
        assert len(silent) > 80

        def all_speak() -> bool:
            silent[:] = [query for query in silent if not has_data(url, query)]
            return not silent

        try:
            exporter.until(all_speak, 60)
        except AssertionError:
            pytest.fail(f"no data for {json.dumps(silent, indent=1)}")


async def test_the_dashboards_of_vpenso_have_data(
    cluster: Sandbox, busy: int, port: int, tmp_path: Path
) -> None:
    names = {
        f"slurm_{prefix}_{suffix}": labels
        for labels, text in VPENSO.items()
        for prefix, suffixes in re.findall(r"(\w+)_\{(.*?)\}", text)
        for suffix in suffixes.split(",")
    }
    queries = [
        *DASHBOARD_4323,
        *(f"count by ({', '.join(labels)}) ({name})" for name, labels in names.items()),
        *(f'{name}{{{", ".join(f"{label}!=``" for label in labels)}}}' for name, labels in names.items()),
    ]  # fmt: skip
    assert busy
    assert set(names) == {one.name for part in vpenso.CHAPTERS for one in part.families}
    with (
        running_exporter(cluster, port=port) as exporter,
        running_prometheus(f"127.0.0.1:{port}", tmp_path, "/metrics/vpenso") as url,
    ):
        exporter.until(lambda: has_data(url, "slurm_cpus_total"))
        exporter.until(lambda: has_data(url, "slurm_account_fairshare"))
        assert [] == [query for query in queries if not has_data(url, query)]


async def test_one_job_is_shown_only_if_job_info_is_on(
    cluster: Sandbox, busy: int, port: int
) -> None:
    with running_exporter(cluster, port=port) as exporter:
        assert busy
        assert "slurm_job_info" not in exporter.families("/metrics")


async def _run_a_job(slurm: Client, exporter: Exporter) -> None:
    where = {"partition": "slurm-bridge", "account": "root"}
    before = exporter.value("slurm_job_starts_total", **where) or 0
    small = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
    answer = await slurm.jobs.submit(flags=["EXTERNAL_JOB"], time_limit=30, **small)  # type: ignore[arg-type]  # a field of any name
    exporter.until(lambda: (exporter.value("slurm_job_starts_total", **where) or 0) > before)
    await slurm.jobs.cancel(answer.job_id)
