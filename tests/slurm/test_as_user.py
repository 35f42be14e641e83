"""Changes of a waiting placeholder are made as its user: root's would lift the limits on it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.model.identities import FirstSubmission
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import Changes
from bridge.slurm import jobs
from sandbox.client import Sandbox
from slurmclient.errors import Declined, TargetNotFound
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId
from tests.slurm.placeholders import DEADLINE_S, POLL_S, identity, in_phase, spec

ACCOUNT = "limited"


@pytest.fixture(scope="module")
def limited(slurm_accounting: Sandbox) -> Iterator[Sandbox]:
    """Alice's jobs in one account have at most 2 CPUs and an hour."""

    def sacctmgr(*arguments: str) -> None:
        slurm_accounting.run("sacctmgr", "-i", *arguments)

    sacctmgr("add", "qos", "forbidden")
    sacctmgr("add", "account", ACCOUNT)
    sacctmgr("add", "user", "alice", f"account={ACCOUNT}")
    limits = ("maxtresperjob=cpu=2", "maxwall=60")
    sacctmgr("modify", "user", "alice", "where", f"account={ACCOUNT}", "set", *limits)
    yield slurm_accounting
    sacctmgr("delete", "user", "alice", f"account={ACCOUNT}")


@pytest.fixture
async def client(limited: Sandbox) -> AsyncIterator[SlurmClient]:
    async with SlurmClient.open(limited.slurmrestd_url, token_file=limited.token_file) as opened:
        yield opened


@pytest.fixture
async def waiting(client: SlurmClient) -> AsyncIterator[SlurmJob]:
    """Hers, held back by its limit of CPUs."""
    job_id = await jobs.submit(client, hers(cpus_per_task=4))
    yield await in_phase(client, job_id, JobPhase.WAITING)
    await jobs.cancel(client, job_id)


def hers(user: str = "alice", **changes: Any) -> Any:
    frozen = FirstSubmission(requester="a", rule="r", user=user, account=ACCOUNT)
    return spec(
        replace(identity(), frozen=frozen), user=user, group=user, account=ACCOUNT, **changes
    )


async def test_what_is_changed_stays_limited(client: SlurmClient, waiting: SlurmJob) -> None:
    await jobs.update_as_user(client, waiting, Changes(cpus_per_task=3))

    await _await_reason(client, waiting.id, "AssocMaxCpuPerJobLimit")
    await jobs.update_as_user(client, waiting, Changes(cpus_per_task=1, time_limit_min=90))
    await _await_reason(client, waiting.id, "AssocMaxWallDurationPerJobLimit")
    await jobs.update_as_user(client, waiting, Changes(time_limit_min=30))
    await in_phase(client, waiting.id, JobPhase.RUNNING)


async def test_the_same_change_as_root_would_lift_the_limit(
    client: SlurmClient, waiting: SlurmJob, limited: Sandbox
) -> None:
    """Why it matters: what `scontrol update` by root does."""
    limited.run("scontrol", "update", f"jobid={waiting.id}", "numcpus=3")

    await in_phase(client, waiting.id, JobPhase.RUNNING)


async def test_what_the_user_may_not_have_is_refused(
    client: SlurmClient, waiting: SlurmJob
) -> None:
    with pytest.raises(Declined, match="Invalid qos"):
        await jobs.update_as_user(client, waiting, Changes(qos="forbidden"))


async def test_a_uid_is_as_good_as_a_name(client: SlurmClient) -> None:
    job_id = await jobs.submit(client, hers("64101", hold=True))
    try:
        held = await jobs.job(client, job_id)
        assert isinstance(held, SlurmJob)
        await jobs.update_as_user(client, held, Changes(time_limit_min=7))
        changed = await jobs.job(client, job_id)
    finally:
        await jobs.cancel(client, job_id)
    assert isinstance(changed, SlurmJob)
    assert 7 == changed.time_limit_min


async def test_another_workloads_job_is_left_alone(client: SlurmClient, waiting: SlurmJob) -> None:
    with pytest.raises(TargetNotFound):
        await jobs.update_as_user(
            client, replace(waiting, identity=identity()), Changes(time_limit_min=1)
        )


async def test_a_job_that_does_not_say_whose_it_is_is_left_alone(client: SlurmClient) -> None:
    job_id = await jobs.submit(client, spec(user="alice", group="alice", hold=True))
    try:
        held = await jobs.job(client, job_id)
        assert isinstance(held, SlurmJob)
        with pytest.raises(Declined, match="does not record its user"):
            await jobs.update_as_user(client, held, Changes(time_limit_min=1))
    finally:
        await jobs.cancel(client, job_id)


async def _await_reason(client: SlurmClient, job_id: JobId, expected: str) -> None:
    """Slurm looks at a changed job again within a second."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = await jobs.job(client, job_id)
            assert isinstance(found, SlurmJob)
            if found.reason == expected:
                return
            await asyncio.sleep(POLL_S)
