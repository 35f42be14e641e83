"""The dashboard: a real Prometheus that scrapes a sandbox has data for every query of every panel."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, played
from tests.prometheus import scraping
from tests.servers import wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "chart/files/dashboard.json"

SILENT_WHEN_WELL = {
    "increase(slurm_bridge_evictions_total": "no pod had to go",
}
"""Queries that have no data on a good day, by their beginning."""


def test_the_dashboard_is_what_its_program_writes() -> None:
    before = DASHBOARD.read_text()
    subprocess.run((sys.executable, "-m", "docs.generate.dashboard"), cwd=DEPLOY.parent, check=True)

    assert before == DASHBOARD.read_text(), "make docs"


@pytest.fixture(scope="module")
def url(
    full_sandbox: Sandbox, prometheus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A Prometheus that scrapes everything twice a second."""
    folder = tmp_path_factory.mktemp("prometheus")
    env = full_sandbox.env
    ours = [env[f"SLURM_BRIDGE_METRICS_{name}"] for name in ("WEBHOOK", "EXTENDER", "CONTROLLERS")]
    slurmctld = f"127.0.0.1:{full_sandbox.slurmctld_port}"
    bridge = {
        "job_name": "slurm-bridge",
        "static_configs": [{"targets": [httpx.URL(one).netloc.decode() for one in ours]}],
    }
    slurm = [
        {
            "job_name": f"slurm-{what}",
            "metrics_path": f"/metrics/{what}",
            "static_configs": [{"targets": [slurmctld]}],
        }
        for what in ("jobs", "nodes")
    ]
    with scraping(prometheus / "prometheus", [bridge, *slurm], folder) as prometheus_url:
        yield prometheus_url


def asked(url: str, query: str) -> list[Any]:
    try:
        answer = httpx.get(
            f"{url}/api/v1/query", params={"query": query}, timeout=10, trust_env=False
        )
    except httpx.TransportError:
        return []
    if not answer.is_success:
        return []
    found: list[Any] = answer.json()["data"]["result"]
    return found


def test_every_query_has_data(full_sandbox: Sandbox, bridged_namespace: str, url: str) -> None:
    wait_until(lambda: len(asked(url, "up == 1")) == 5, 30, sandbox=full_sandbox)
    worlds = Worlds(full_sandbox, bridged_namespace)
    for n in range(3):
        worlds.submit(f"ends-{n}", annotations=played(seconds=1))
    worlds.submit("held", annotations={"slurmjob.slinky.slurm.net/hold": "true"})

    queries = [
        target["expr"].replace("$__rate_interval", "1m")
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel.get("targets", [])
    ]
    wanted = [q for q in queries if not any(quiet in q for quiet in SILENT_WHEN_WELL)]
    assert len(wanted) > 25

    silent = list(wanted)

    def all_speak() -> bool:
        silent[:] = [query for query in silent if not asked(url, query)]
        return not silent

    try:
        wait_until(all_speak, 60, sandbox=full_sandbox)
    except AssertionError:
        pytest.fail(f"no data for {silent}")
