"""Slurm's own answers to a question by ids: together they are its whole list, arrays and heterogeneous jobs included."""

import time

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import JobPhase
from bridge.slurm import complete, jobs
from bridge.slurm.complete import ControllerHosts
from sandbox.client import Sandbox
from slurmclient.watching import listing
from slurmclient.watching.listing import Lists
from slurmruntime.slurm.client import SlurmClient
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import in_phase, spec

HELD = ("--hold", "--chdir=/tmp", "--wrap=true")


@pytest.fixture(autouse=True)
def very_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "AT_ONCE", 1)


async def test_what_is_asked_for_by_ids_is_what_slurm_lists(
    client: SlurmClient, submit: Submit, slurm: Sandbox
) -> None:
    ids = [await submit(spec(hold=True)) for _ in range(3)]
    await submit(spec(hold=True, also=(spec(hold=True),)))
    array = slurm.run("sbatch", "--parsable", "--array=0-5%2", *HELD).strip()
    slurm.run("scontrol", "update", f"jobid={array}_3", "nice=5")  # it gets a record of its own
    lists = Lists(client, clock=time.monotonic, arrays=True)
    await lists.read()

    await jobs.cancel(client, ids[0])
    await submit(spec(hold=True))
    slurm.run("sbatch", "--array=1-2", *HELD)
    by_ids = await lists.read()

    whole = await listing.all_jobs(client, arrays=True)
    assert whole.states == by_ids.states
    assert {each.job_id for each in whole.raw.listed} == {each.job_id for each in by_ids.raw.listed}
    assert any("_" in each.job_id for each in whole.raw.listed)
    assert any("+1" in each.job_id for each in whole.raw.listed)
    assert by_ids is await lists.read()


async def test_slurmctld_counts_all_that_has_to_be_seen_soon(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit, slurm: Sandbox
) -> None:
    """So nothing is listed while it counts nothing. What it does not count gives nobody room who has started since."""
    await submit(spec(hold=True))
    lists = Lists(client, clock=time.monotonic)
    before = await lists.read()

    async def is_seen() -> bool:
        nonlocal before
        now = (await listing.all_jobs(client)).states
        found = await lists.read(surely=False)
        is_new, before = found is not before, found
        return is_new and found.states == now

    waiting = await submit(spec(hold=True))
    assert await is_seen(), "a submit"
    slurm.run("scancel", str(waiting))
    assert await is_seen(), "a scancel of a job that waits"
    running = [await in_phase(client, await submit(spec()), JobPhase.RUNNING) for _ in range(2)]
    assert await is_seen(), "a start"
    slurm.run("scancel", str(running[0].id))
    await in_phase(client, running[0].id, JobPhase.ENDED)
    assert await is_seen(), "a scancel of a job that runs"
    await complete.complete(
        client, controllers, running[1].id, Outcome(exit_code=3), sluid=running[1].sluid
    )
    await in_phase(client, running[1].id, JobPhase.ENDED)
    assert await is_seen(), "a completion"
    assert before is await lists.read(surely=False)
