"""A client of the shared Slurm, and a Slurm that tests may break."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.slurm import jobs
from bridge.slurm.complete import ControllerHost, ControllerHosts
from bridge.slurm.discovery import Discovery
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId
from tests.faults import Proxy
from tests.servers import running_sandbox
from tests.slurm.placeholders import CLUSTER, said_when_it_started

Submit = Callable[[PlaceholderSpec], Awaitable[JobId]]


@pytest.fixture(scope="session")
def fragile_slurm() -> Iterator[Sandbox]:
    """A Slurm of our own, to crash: daemons give each other up after 2 s, ended jobs are forgotten after 1 s."""
    with running_sandbox(Options(kubernetes=False, bridge=False, nodes=2)) as sandbox:
        for conf in sandbox.slurm_conf.parent.glob("slurm*.conf"):
            text = conf.read_text()
            text = text.replace("MessageTimeout=5", "MessageTimeout=2")
            conf.write_text(text.replace("MinJobAge=300", "MinJobAge=1"))
        sandbox.restart("slurmctld")
        sandbox.restart("slurmrestd")
        yield sandbox


@pytest.fixture
async def client(slurm: Sandbox) -> AsyncIterator[SlurmClient]:
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=slurm.token_file) as opened:
        yield opened


@pytest.fixture
def controllers(slurm: Sandbox) -> ControllerHosts:
    return ControllerHosts(ControllerHost(host="127.0.0.1", port=slurm.slurmctld_port))


@pytest.fixture
async def submit(client: SlurmClient) -> AsyncIterator[Submit]:
    """Submits, and cancels at the end."""
    submitted: list[JobId] = []

    async def one(spec: PlaceholderSpec) -> JobId:
        submitted.append(await jobs.submit(client, spec))
        return submitted[-1]

    yield one
    for job_id in submitted:
        await jobs.cancel(client, job_id)


@pytest.fixture
async def proxy(slurm: Sandbox) -> AsyncIterator[Proxy]:
    async with Proxy.to(slurm.slurmrestd_url) as opened:
        yield opened


@pytest.fixture
async def watching(proxy: Proxy, slurm: Sandbox, client: SlurmClient) -> AsyncIterator[SlurmClient]:
    """The client discovery has, apart from the tests' own.

    Until slurmctld says when it started, what it says counts as another's, and all jobs are looked at twice.
    """
    await said_when_it_started(client)
    async with SlurmClient.open(proxy.url, token_file=slurm.token_file) as opened:
        yield opened


@pytest.fixture
def discovery(watching: SlurmClient) -> Discovery:
    return Discovery(watching, CLUSTER, clock=time.monotonic)
