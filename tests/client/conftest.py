"""Clients of the shared Slurm with accounting, and jobs that are cancelled after the test."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Cache, Client, Model, Time, TokenFile
from slurmclient.resources.submission import SubmitResult
from tests.servers import running_sandbox

Submit = Callable[..., Awaitable[SubmitResult]]


class Row(Model, frozen=True):
    job_id: int
    name: str = ""
    user_name: str = ""
    job_state: frozenset[str] = frozenset()
    comment: str = ""
    submit_time: Time = None


@pytest.fixture
async def client(slurm_accounting: Sandbox) -> AsyncIterator[Client]:
    token = TokenFile(slurm_accounting.token_file)
    async with Client(slurm_accounting.slurmrestd_url, token=token) as opened:
        yield opened


@pytest.fixture
async def submit(client: Client) -> AsyncIterator[Submit]:
    """Submits a job that needs no slurmd, and cancels it after the test."""
    submitted: list[int] = []

    async def one(**fields: object) -> SubmitResult:
        given = {
            "name": "test",
            "minimum_nodes": 1,
            "memory_per_node": {"set": True, "number": 100},
        }
        answer = await client.jobs.submit(flags=["EXTERNAL_JOB"], **{**given, **fields})  # type: ignore[arg-type]  # a field of any name
        submitted.append(answer.job_id)
        return answer

    yield one
    if submitted:
        await client.jobs.cancel_many(*submitted)


@pytest.fixture
async def cache(client: Client) -> AsyncIterator[Cache[Row]]:
    indexes: dict[str, Callable[[Row], str]] = {"name": lambda row: row.name}
    async with client.jobs.cache(as_=Row, interval_s=0.2, indexes=indexes) as running:
        await running.synced(timeout_s=30)
        yield running


@pytest.fixture(scope="session")
def slurm_with_slurmd() -> Iterator[Sandbox]:
    """A Slurm that runs batch jobs."""
    if os.getuid() != 0:
        pytest.skip("slurmd needs root")
    with running_sandbox(Options(kubernetes=False, bridge=False, hybrid=True, nodes=0)) as sandbox:
        yield sandbox
