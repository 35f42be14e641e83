"""slurmctld's own port is out of reach: outcomes are tried again for a while, then the next best thing is done."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from typing_extensions import override

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.reconcile.completion import PATIENCE_S, Completer
from bridge.slurm import jobs
from bridge.slurm.complete import ControllerHost, ControllerHosts
from sandbox import nss
from sandbox.client import Sandbox
from slurmclient.errors import Unavailable
from slurmruntime.process.clock import SystemClock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, PodUid, alone_key

_NOBODY = 1
"""A port where nothing listens."""


@dataclass
class Late(SystemClock):
    """A clock that can be put forward."""

    ahead_s: float = 0

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@pytest.fixture
async def slurm_client(full_sandbox: Sandbox) -> AsyncIterator[SlurmClient]:
    async with SlurmClient.open(
        full_sandbox.slurmrestd_url,
        token_file=full_sandbox.token_file,
        connections=2,
        request_timeout_s=10,
    ) as client:
        yield client


async def submitted(client: SlurmClient) -> SlurmJob:
    """A placeholder of another cluster's, which waits: this cluster's programs leave it alone."""
    user = nss.JOB_USER.name
    uid = PodUid("elsewhere")
    spec = PlaceholderSpec(
        identity=Identity(
            cluster=ClusterId("another"),
            kind="Pod",
            namespace="team-a",
            name="train",
            key=alone_key(uid),
            pods=(uid,),
        ),
        name="train",
        user=user,
        group=user,
        account=user,
        cpus_per_task=1,
        memory_mib_per_node=64,
        hold=True,
    )
    job = await jobs.job(client, await jobs.submit(client, spec))
    assert isinstance(job, SlurmJob)
    return job


async def test_an_outcome_that_cannot_be_told_for_long_is_left_in_writing(
    slurm_client: SlurmClient,
) -> None:
    clock = Late()
    completer = Completer(
        slurm_client, ControllerHosts(ControllerHost(host="127.0.0.1", port=_NOBODY)), clock
    )
    job = await submitted(slurm_client)

    with pytest.raises(Unavailable):
        await completer.complete(job, Outcome(exit_code=3))
    still = await jobs.job(slurm_client, job.id)
    assert isinstance(still, SlurmJob)
    assert JobPhase.WAITING is still.phase

    clock.ahead_s = PATIENCE_S
    await completer.complete(job, Outcome(exit_code=3))

    over = await jobs.job(slurm_client, job.id)
    assert isinstance(over, SlurmJob)
    assert (JobEnd.CANCELLED, "exit code 3") == (over.end, over.identity.ended)
