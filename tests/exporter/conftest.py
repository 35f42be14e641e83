"""A Slurm with something of everything, and exporters that read it."""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sandbox import ports
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Client, TokenFile
from tests.exporter.records import samples, value
from tests.servers import running_sandbox, wait_until

CONF = """
Licenses=matlab:10
MaxArraySize=100001
MaxJobCount=250000
PriorityType=priority/multifactor
PriorityWeightFairshare=1000
PartitionName=second Nodes=slurm-bridge MaxTime=60 State=UP
PartitionName=third Nodes=slurm-bridge State=DOWN
"""


class Exporter:
    """A running slurm-exporter."""

    def __init__(self, url: str, log: Path, sandbox: Sandbox) -> None:
        self.url = url
        self._log = log
        self._sandbox = sandbox

    def page(self, path: str = "/metrics", **headers: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=5, trust_env=False)

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a series; None if there is none."""
        try:
            return value(self.page().content, name, **labels)
        except KeyError:
            return None

    def until(self, condition: Callable[[], object], deadline_s: float = 30) -> None:
        try:
            wait_until(condition, deadline_s, sandbox=self._sandbox)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._log.read_text()}") from None

    def is_fresh(self, source: str) -> bool:
        return self.value("slurm_exporter_data_fresh", source=source) == 1

    def reads(self, source: str) -> float:
        """How often a source has been read."""
        return self.value("slurm_exporter_collects_total", source=source, outcome="ok") or 0

    def has_read_again(self) -> None:
        """Return after readings of all that changes that began after this call."""
        for source in ("nodes", "jobs"):
            before = self.reads(source)
            self.until(lambda before=before, source=source: self.reads(source) >= before + 2)  # type: ignore[misc]  # bound here

    def families(self, path: str) -> set[str]:
        return set(samples(self.page(path).content))


def command(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "slurmexporter", *arguments)


def environment(sandbox: Sandbox) -> dict[str, str]:
    tree = Path(__file__).parents[2]
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{tree / 'client'}:{tree / 'exporter'}",
        "SLURMRESTD_URL": sandbox.slurmrestd_url,
        "SLURM_JWT": sandbox.token(),
    }


@contextmanager
def running_exporter(
    sandbox: Sandbox, *arguments: str, port: int, environ: Mapping[str, str] | None = None
) -> Iterator[Exporter]:
    """An exporter that reads twice a second, and names users."""
    with tempfile.NamedTemporaryFile("w+") as log:
        process = subprocess.Popen(
            command("--interval=500ms", f"--listen=127.0.0.1:{port}", *arguments),
            env={
                **environment(sandbox),
                "SLURM_EXPORTER_USER_NAMES": "true",
                **(environ or {}),
            },
            stdout=log,
            stderr=log,
        )
        try:
            exporter = Exporter(f"http://127.0.0.1:{port}", Path(log.name), sandbox)
            exporter.until(lambda: _answers(exporter))
            yield exporter
        finally:
            process.terminate()
            assert 0 == process.wait(10), Path(log.name).read_text()


def _answers(exporter: Exporter) -> bool:
    try:
        return exporter.page().is_success and exporter.is_fresh("jobs")
    except httpx.TransportError:
        return False


@pytest.fixture
def port() -> int:
    dice = random.Random()  # noqa: S311  # a port, nothing secret
    return ports.choose(["exporter"], dice=dice)["exporter"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Sandbox]:
    """A Slurm with accounting, licenses, three partitions and room for a large array."""
    with running_sandbox(Options(kubernetes=False, bridge=False, accounting=True)) as sandbox:
        with sandbox.slurm_conf.open("a") as conf:
            conf.write(CONF)
        sandbox.restart("slurmctld")
        sandbox.restart("slurmrestd")
        yield sandbox


@pytest.fixture
async def slurm(cluster: Sandbox) -> AsyncIterator[Client]:
    """A client; every job is cancelled after the test."""
    token = TokenFile(cluster.token_file)
    async with Client(cluster.slurmrestd_url, token=token) as opened:
        yield opened
        jobs = await opened.jobs.list()
        alive = {job.job_id for job in jobs if job.job_state & {"PENDING", "RUNNING"}}
        if alive:
            await opened.jobs.cancel_many(*alive)
