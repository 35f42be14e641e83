"""Waking slurmctld's scheduler: what it does and, above all, what it leaves alone. Against the real slurmctld."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.slurm import complete, kick
from bridge.slurm.complete import ControllerHosts
from bridge.slurm.discovery import Discovery
from bridge.slurm.kick import EndedJob
from sandbox.client import Sandbox
from slurmruntime.slurm import inspection
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import CLUSTER, in_phase, said_when_it_started, spec

USUAL = "batch_sched_delay=0,sched_interval=1,bf_interval=1"
SLOW = "batch_sched_delay=600,sched_interval=600,bf_interval=600"
"""With these, nothing starts by itself within a test's deadline."""


@contextmanager
def scheduling(slurm: Sandbox, parameters: str) -> Iterator[None]:
    """Slurm with other SchedulerParameters, for a while."""
    usual = slurm.slurm_conf.read_text()
    slurm.slurm_conf.write_text(usual.replace(USUAL, parameters))
    slurm.run("scontrol", "reconfigure")
    try:
        yield
    finally:
        slurm.slurm_conf.write_text(usual)
        slurm.run("scontrol", "reconfigure")


async def test_a_kick_starts_in_each_protocol_what_was_just_submitted(
    client: SlurmClient,
    controllers: ControllerHosts,
    submit: Submit,
    slurm: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    with scheduling(slurm, SLOW):
        assert not await inspection.defers(client)
        await said_when_it_started(client)
        discovery = Discovery(client, CLUSTER, clock=lambda: 0.0)
        await discovery.refresh()
        assert discovery.last_ended is None
        await complete.complete(client, controllers, running.id, Outcome(), sluid=running.sluid)
        async with asyncio.timeout(30):
            while (ended := discovery.last_ended) is None:  # it may be COMPLETING for a moment
                await discovery.refresh()
        assert EndedJob(running.id, running.sluid) == ended
        for protocol in (43, 44, 45):
            monkeypatch.setattr(complete, "protocol_for", lambda _, it=protocol: it)
            waiting = await submit(spec())

            await kick.kick(client, controllers, ended)

            await in_phase(client, waiting, JobPhase.RUNNING)


async def test_a_slurm_that_defers_says_so(client: SlurmClient, slurm: Sandbox) -> None:
    with scheduling(slurm, f"defer,{USUAL}"):
        assert await inspection.defers(client)


async def test_a_kick_changes_no_job_whatever_it_names(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit
) -> None:
    """A stale id, or one that is another's by now: nothing happens, and slurmctld's answer is the same."""
    held = await in_phase(client, await submit(spec(hold=True)), JobPhase.WAITING)
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    ran = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    await complete.complete(client, controllers, ran.id, Outcome(exit_code=3), sluid=ran.sluid)
    ended = await in_phase(client, ran.id, JobPhase.ENDED)

    for job in (held, running, ended):
        await kick.kick(client, controllers, EndedJob(job.id, job.sluid))
        await kick.kick(client, controllers, EndedJob(job.id, None))
    await kick.kick(client, controllers, EndedJob(JobId(999_999), None))

    after = [await in_phase(client, job.id, job.phase) for job in (held, running, ended)]
    assert [shown(job) for job in (held, running, ended)] == [shown(job) for job in after]


def shown(job: SlurmJob) -> tuple[object, ...]:
    return job.id, job.states, job.nodes, job.end, job.exit_code, job.ends_at, job.held
