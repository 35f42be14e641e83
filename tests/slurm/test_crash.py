"""slurmctld down, hung, killed, wiped; jobs purged. On a Slurm of our own."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.slurm import complete, jobs, nodes
from bridge.slurm.complete import ControllerHost, ControllerHosts
from bridge.slurm.discovery import Discovery
from bridge.slurm.jobs import Ending
from sandbox.client import Sandbox
from slurmclient.errors import LostReply, Unavailable
from slurmclient.watching import listing
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, SlurmNode
from tests.slurm.placeholders import (
    CLUSTER,
    DEADLINE_S,
    identity,
    in_phase,
    said_when_it_started,
    spec,
)

PURGE_DEADLINE_S = 60.0


@pytest.fixture
async def client(fragile_slurm: Sandbox) -> AsyncIterator[SlurmClient]:
    async with SlurmClient.open(
        fragile_slurm.slurmrestd_url, token_file=fragile_slurm.token_file
    ) as opened:
        yield opened


@pytest.fixture
def controllers(fragile_slurm: Sandbox) -> ControllerHosts:
    port = fragile_slurm.slurmctld_port
    return ControllerHosts(ControllerHost(host="127.0.0.1", port=port, timeout_s=2))


@pytest.fixture
def discovery(client: SlurmClient) -> Discovery:
    return Discovery(client, CLUSTER, clock=time.monotonic)


async def error_of(call: Awaitable[object]) -> type[Exception]:
    try:
        await call
    except Unavailable as error:
        return type(error)
    raise AssertionError("it should have failed")


async def test_everything_is_unavailable_while_slurmctld_is_down_and_resumes_by_itself(
    fragile_slurm: Sandbox, client: SlurmClient, controllers: ControllerHosts, discovery: Discovery
) -> None:
    job_id = await jobs.submit(client, spec(hold=True))
    node = SlurmNodeSpec(name=SlurmNode("n"), address="127.0.0.1", cpus=1, memory_mib=1)
    await discovery.refresh()
    await asyncio.to_thread(fragile_slurm.stop, "slurmctld")

    errors = await asyncio.gather(
        *map(
            error_of,
            [
                jobs.submit(client, spec()),
                nodes.create(client, node),
                complete.complete(client, controllers, job_id, Outcome(), sluid=None),
                listing.all_jobs(client),
                jobs.job(client, job_id),
                jobs.cancel(client, job_id),
                nodes.listing(client),
                discovery.refresh(),
            ],
        )
    )
    await asyncio.to_thread(fragile_slurm.start, "slurmctld")

    # What was surely not done, so that a submit may be repeated at once …
    assert [Unavailable] * 3 == errors[:3]
    # … and what looks as if it might have been.
    assert {Unavailable, LostReply} >= set(errors[3:])
    assert job_id in (await discovery.refresh()).jobs
    await jobs.cancel(client, job_id)


async def test_a_submit_to_a_hung_slurmctld_is_lost_and_accepted_when_it_wakes(
    fragile_slurm: Sandbox, client: SlurmClient, discovery: Discovery
) -> None:
    whose = identity()
    await discovery.refresh()
    await asyncio.to_thread(fragile_slurm.pause, "slurmctld")
    with pytest.raises(LostReply):
        await jobs.submit(client, spec(whose, hold=True))
    await asyncio.to_thread(fragile_slurm.resume, "slurmctld")

    # What was asked while it hung is answered in no particular order.
    found: tuple[SlurmJob, ...] = ()
    async with asyncio.timeout(DEADLINE_S):
        while not found:
            found = (await discovery.refresh()).by_key.get(whose.key, ())
    (job,) = found
    await jobs.cancel(client, job.id)


async def test_a_clean_restart_keeps_everything(
    fragile_slurm: Sandbox, client: SlurmClient, discovery: Discovery
) -> None:
    whose = identity()
    running = await in_phase(client, await jobs.submit(client, spec(whose)), JobPhase.RUNNING)
    before = await discovery.refresh()
    await asyncio.to_thread(fragile_slurm.restart, "slurmctld")

    after = await discovery.refresh()

    assert before.by_key[whose.key] == after.by_key[whose.key]
    await jobs.cancel(client, running.id)


async def about_to_forget(sandbox: Sandbox, client: SlurmClient) -> None:
    """Bring slurmctld to where it saves nothing for a while: it has just saved a job, and does so every 5 s at most."""
    await asyncio.to_thread(sandbox.restart, "slurmctld")
    # It notes its start a second or more after it, in whole seconds: the next one must differ.
    await said_when_it_started(client)
    await asyncio.sleep(1.1)
    await jobs.cancel(client, await jobs.submit(client, spec(hold=True)))
    await asyncio.sleep(0.3)


async def submit_as(client: SlurmClient, wanted: JobId, whose: Identity) -> JobId:
    """Submit, after a crash, until an id that was lost in it is given again."""
    while (job_id := await jobs.submit(client, spec(whose, hold=True))) < wanted:
        await jobs.cancel(client, job_id)
    assert wanted == job_id
    return job_id


async def test_after_a_crash_an_id_may_be_another_jobs_and_the_sluid_tells(
    fragile_slurm: Sandbox, client: SlurmClient, controllers: ControllerHosts, discovery: Discovery
) -> None:
    ours, theirs = identity(), identity()
    await about_to_forget(fragile_slurm, client)
    lost = await jobs.submit(client, spec(ours, hold=True))
    known = (await discovery.refresh()).jobs[lost]
    await asyncio.to_thread(fragile_slurm.restart, "slurmctld", signal="KILL")
    again = await submit_as(client, lost, theirs)
    assert known.sluid is not None

    snapshot = await discovery.refresh()

    whose = {key: [job.id for job in held] for key, held in snapshot.by_key.items()}
    log = fragile_slurm.instance.log("slurmctld")
    assert ours.key not in whose, (whose, discovery.slurms_time, log.read_text()[-8000:])
    assert again in whose[theirs.key]
    assert Ending.NO_SUCH_JOB is await jobs.cancel(client, lost, sluid=known.sluid)
    assert Ending.NO_SUCH_JOB is await complete.complete(
        client, controllers, lost, Outcome(), sluid=known.sluid
    )
    assert JobPhase.WAITING is (await in_phase(client, again, JobPhase.WAITING)).phase
    await jobs.cancel(client, again)


async def test_a_stranger_whose_id_became_ours_in_a_crash_is_recognised(
    fragile_slurm: Sandbox, client: SlurmClient, discovery: Discovery
) -> None:
    ours = identity()
    await about_to_forget(fragile_slurm, client)
    printed = fragile_slurm.run(
        "sbatch", "--external", "--hold", "--parsable", "-t", "5", "--mem=10"
    )
    stranger = JobId(int(printed.split(";")[0]))
    assert stranger not in (await discovery.refresh()).jobs
    await asyncio.to_thread(fragile_slurm.restart, "slurmctld", signal="KILL")
    # By another process, or with a lost reply: this discovery is not told.
    await submit_as(client, stranger, ours)

    assert stranger in {job.id for job in (await discovery.refresh()).by_key[ours.key]}
    await jobs.cancel(client, stranger)


async def test_ended_jobs_are_dropped_when_slurm_forgets_them(
    client: SlurmClient, discovery: Discovery
) -> None:
    seen_ending, unseen_ending = identity(), identity()
    first = await jobs.submit(client, spec(seen_ending, hold=True))
    second = await jobs.submit(client, spec(unseen_ending, hold=True))
    before = await discovery.refresh()
    await jobs.cancel(client, first)
    after = await discovery.refresh()
    await jobs.cancel(client, second)
    assert JobPhase.ENDED is after.jobs[first].phase
    assert JobPhase.WAITING is before.jobs[second].phase

    end_s = time.monotonic() + PURGE_DEADLINE_S
    while {first, second} & (await listing.all_jobs(client)).states.keys():
        assert time.monotonic() < end_s, "Slurm has not purged them"
        await asyncio.sleep(0.2)

    assert not {first, second} & (await discovery.refresh()).jobs.keys()


async def test_a_wiped_slurmctld_leaves_an_empty_snapshot(
    fragile_slurm: Sandbox, client: SlurmClient, discovery: Discovery
) -> None:
    running = await jobs.submit(client, spec())
    job = await in_phase(client, running, JobPhase.RUNNING)
    assert isinstance(job, SlurmJob)
    assert running in (await discovery.refresh()).jobs

    await asyncio.to_thread(fragile_slurm.restart, "slurmctld", signal="KILL", wipe=True)

    assert {} == (await discovery.refresh()).jobs
