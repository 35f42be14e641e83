"""Discovery against the real Slurm: what it finds, what it costs, what it survives."""

import asyncio
import time
from dataclasses import replace

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model import batch
from bridge.domain.model.batch import BatchMark
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm import complete, jobs
from bridge.slurm.complete import ControllerHosts
from bridge.slurm.discovery import Discovery
from sandbox.client import Sandbox
from slurmclient.watching.unread import Pace
from slurmclient.wire.reading import Answer
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, JobId
from tests import faults
from tests.faults import Proxy
from tests.servers import until
from tests.slurm.conftest import Submit
from tests.slurm.discovering import LOOK, STATES, refresh_until_phase
from tests.slurm.placeholders import CLUSTER, DEADLINE_S, POLL_S, USER, identity, spec


async def test_it_finds_this_clusters_placeholders_by_workload(
    discovery: Discovery, submit: Submit
) -> None:
    whose = identity()
    first, spare = await submit(spec(whose, hold=True)), await submit(spec(whose, hold=True))

    snapshot = await discovery.refresh()

    assert [first, spare] == [job.id for job in snapshot.by_key[whose.key]]
    assert whose == snapshot.jobs[first].identity
    assert all(job.sluid for job in snapshot.by_key[whose.key])


async def test_strangers_and_other_clusters_are_looked_at_once_and_left_out(
    discovery: Discovery, submit: Submit, proxy: Proxy, slurm: Sandbox, client: SlurmClient
) -> None:
    other = await submit(spec(identity(cluster=ClusterId("another")), hold=True))
    printed = slurm.run("sbatch", "--external", "--hold", "--parsable", "-t", "5", "--mem=10")
    stranger = JobId(int(printed.split(";")[0]))

    for _ in range(3):
        snapshot = await discovery.refresh()
        assert not {other, stranger} & snapshot.jobs.keys()

    assert [1, 1] == [proxy.count("GET", f"{LOOK}{id_}?") for id_ in (other, stranger)]
    await jobs.cancel(client, stranger)


async def test_a_slurmjobs_job_is_found_by_whoever_looks_for_them_and_a_stranger_to_all_others(
    watching: SlurmClient, client: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    whose = identity()
    placeholder = await submit(spec(whose, hold=True))
    mark = BatchMark(cluster=CLUSTER, namespace="team-a", name="train", key=whose.key, attempt=1)
    batch_id = await held_batch_job(client, mark)
    for_both = Discovery(watching, CLUSTER, clock=time.monotonic, batch=True)
    for_pods = Discovery(watching, CLUSTER, clock=time.monotonic)

    both, pods = await for_both.refresh(), await for_pods.refresh()

    (found,) = both.batch_by_key[whose.key]
    assert (batch_id, mark, True) == (found.id, found.mark, found.held)
    assert [placeholder] == [job.id for job in both.by_key[whose.key]]
    assert both.jobs.keys() == pods.jobs.keys()
    assert {} == pods.batch_by_key
    assert await jobs.verified(client, batch_id, whose.key) is None, "it must be left alone"
    proxy.requests.clear()
    assert both.batch_by_key == (await for_both.refresh()).batch_by_key
    assert 0 == proxy.count("GET", f"{LOOK}{batch_id}?")
    await jobs.cancel(client, batch_id)


async def held_batch_job(client: SlurmClient, mark: BatchMark) -> JobId:
    job = {
        "name": "train",
        "script": "#!/bin/sh\n",
        "environment": ["PATH=/usr/bin"],
        "current_working_directory": "/",
        "user_id": USER,
        "group_id": USER,
        "hold": True,
        "memory_per_node": {"set": True, "infinite": False, "number": 10},
        "admin_comment": batch.encode(mark),
    }
    answer = await client.call(
        "job.submit", "slurm_post_job_submit", body={"job": job}, answer=Answer
    )
    assert answer.job_id is not None
    return JobId(answer.job_id)


async def test_of_a_flood_some_are_looked_at_in_each_reading_and_ours_come_first(
    watching: SlurmClient, client: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    discovery = Discovery(watching, CLUSTER, clock=time.monotonic, pace=Pace(burst=2))
    whose = identity()
    ours = await submit(spec(whose, hold=True))
    while not (await discovery.refresh()).is_whole:
        continue
    flood = [await submit(spec(identity(cluster=ClusterId("another")), hold=True)) for _ in "12345"]
    changed = replace(whose, cause="Misfit")
    await jobs.amend_identity(client, ours, whose, lambda _: changed)
    discovery.note_changed(ours)
    readings = []
    for _ in range(3):
        proxy.requests.clear()
        snapshot = await discovery.refresh()
        looked_at = sum(proxy.count("GET", f"{LOOK}{id_}?") for id_ in flood)
        readings.append((looked_at, snapshot.is_behind, snapshot.is_whole))
        assert changed == snapshot.jobs[ours].identity

    assert [(2, True, False), (2, True, False), (1, False, True)] == readings


async def test_a_reading_without_news_costs_two_small_requests(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    await submit(spec(hold=True))
    await discovery.refresh()
    proxy.requests.clear()

    await discovery.refresh()

    assert ["/jobs/state/", "/diag/"] == [line.partition("/v0.0.45")[2] for line in proxy.requests]


async def test_a_reading_nobody_asked_for_that_repeats_the_last_one_costs_one_and_is_trusted_for_a_while(
    watching: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    now_s = 0.0
    discovery = Discovery(watching, CLUSTER, clock=lambda: now_s)
    await submit(spec(hold=True))
    first = await discovery.refresh()
    proxy.requests.clear()

    now_s = 9.9
    second = await discovery.refresh(surely=False)
    assert [0, 1] == [proxy.count("GET", "/diag"), proxy.count("GET", STATES)]
    assert (first.jobs, first.by_key) == (second.jobs, second.by_key)
    assert (first.sequence + 1, 9.9) == (second.sequence, second.began_monotonic)

    now_s = 10.0
    await discovery.refresh(surely=False)
    assert [1, 2] == [proxy.count("GET", "/diag"), proxy.count("GET", STATES)]


async def test_news_is_never_believed_without_asking_when_slurmctld_started(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    await discovery.refresh()
    job_id = await submit(spec(hold=True))
    proxy.requests.clear()

    assert job_id in (await discovery.refresh(surely=False)).jobs
    assert 1 == proxy.count("GET", "/diag")


@pytest.fixture
async def patient(watching: SlurmClient) -> tuple[Discovery, list[float]]:
    """Lets new jobs wait 2 s before it looks; with the clock it goes by."""
    now_s = [0.0]
    discovery = Discovery(watching, CLUSTER, clock=lambda: now_s[0], pace=Pace(patience_s=2))
    await discovery.refresh()
    return discovery, now_s


async def test_a_new_job_that_waits_is_left_alone_a_while_and_meanwhile_absence_says_nothing(
    patient: tuple[Discovery, list[float]], submit: Submit, proxy: Proxy
) -> None:
    discovery, now_s = patient
    job_id = await submit(spec(hold=True))

    for at in (1.0, 2.9):
        now_s[0] = at
        snapshot = await discovery.refresh(surely=False)
        assert (False, False) == (job_id in snapshot.jobs, snapshot.is_whole)
        assert 0 == proxy.count("GET", f"{LOOK}{job_id}?")

    now_s[0] = 3.0
    snapshot = await discovery.refresh(surely=False)
    assert (True, True) == (job_id in snapshot.jobs, snapshot.is_whole)
    assert 1 == proxy.count("GET", f"{LOOK}{job_id}?")


async def test_a_new_job_is_looked_at_as_soon_as_it_runs(
    patient: tuple[Discovery, list[float]], submit: Submit, proxy: Proxy
) -> None:
    discovery, _ = patient
    whose = identity()
    job_id = await submit(spec(whose, hold=False))

    end_s = time.monotonic() + DEADLINE_S
    while job_id not in (snapshot := await discovery.refresh()).jobs:
        assert time.monotonic() < end_s
        await asyncio.sleep(POLL_S)

    assert JobPhase.RUNNING is snapshot.jobs[job_id].phase
    assert 1 == proxy.count("GET", f"{LOOK}{job_id}?")


async def test_who_asks_what_is_not_there_gets_every_job_looked_at(
    patient: tuple[Discovery, list[float]], submit: Submit
) -> None:
    discovery, _ = patient
    job_id = await submit(spec(hold=True))
    assert not (await discovery.refresh()).is_whole

    snapshot = await discovery.refresh(complete=True)

    assert (True, True) == (job_id in snapshot.jobs, snapshot.is_whole)


async def test_it_says_whether_a_reading_repeats_the_last_one(
    discovery: Discovery, submit: Submit
) -> None:
    await discovery.refresh()
    assert (await discovery.refresh(surely=False)).is_repeated
    await submit(spec(hold=True))

    assert [False, True] == [(await discovery.refresh(surely=False)).is_repeated for _ in range(2)]


async def test_our_own_submit_is_known_at_once_and_looked_at_when_it_starts(
    discovery: Discovery, client: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    await discovery.refresh()
    whose = identity()
    job_id = await submit(spec(whose, hold=True))
    discovery.note_submitted(job_id, whose)
    proxy.requests.clear()

    waiting = (await discovery.refresh()).jobs[job_id]
    assert (JobPhase.WAITING, None, whose) == (waiting.phase, waiting.sluid, waiting.identity)
    assert 0 == proxy.count("GET", LOOK)

    await client.call(
        "t", "slurm_post_job", {"job_id": job_id}, body={"hold": False}, answer=Answer
    )
    running = (await refresh_until_phase(discovery, whose, JobPhase.RUNNING)).jobs[job_id]
    assert 1 == len(running.nodes)
    assert running.sluid
    assert 1 == proxy.count("GET", LOOK)


async def test_a_submit_during_a_reading_is_not_missing_in_it(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    whose = identity()
    proxy.inject(faults.slow(0.5), "GET", STATES)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(discovery.refresh())
        await until(lambda: proxy.count("GET", STATES), DEADLINE_S)
        await asyncio.sleep(0.2)  # the server has answered, the answer is on its way
        job_id = await submit(spec(whose, hold=True))
        discovery.note_submitted(job_id, whose)

    assert job_id in reading.result().jobs
    assert job_id in (await discovery.refresh()).jobs


async def test_the_end_is_looked_at_once_and_tells_the_cause(
    discovery: Discovery, client: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    whose = identity()
    job_id = await submit(spec(whose))
    await refresh_until_phase(discovery, whose, JobPhase.RUNNING)
    cancelled = replace(whose, cause="Misfit")
    await jobs.amend_identity(client, job_id, whose, lambda _: cancelled)
    await jobs.cancel(client, job_id)
    proxy.requests.clear()

    ended = (await discovery.refresh()).jobs[job_id]
    await discovery.refresh()

    assert (JobPhase.ENDED, JobEnd.CANCELLED, cancelled) == (ended.phase, ended.end, ended.identity)
    assert 1 == proxy.count("GET", f"{LOOK}{job_id}?")


async def test_a_placeholder_that_ran_and_completed_needs_no_look(
    discovery: Discovery,
    client: SlurmClient,
    submit: Submit,
    proxy: Proxy,
    controllers: ControllerHosts,
) -> None:
    whose = identity()
    job_id = await submit(spec(whose))
    running = (await refresh_until_phase(discovery, whose, JobPhase.RUNNING)).jobs[job_id]
    await complete.complete(client, controllers, job_id, Outcome(), sluid=running.sluid)
    proxy.requests.clear()

    ended = (await discovery.refresh()).jobs[job_id]

    assert (JobPhase.ENDED, JobEnd.COMPLETED, 0) == (ended.phase, ended.end, ended.exit_code)
    assert (running.sluid, running.nodes) == (ended.sluid, ended.nodes)
    assert 0 == proxy.count("GET", LOOK)


async def test_what_was_changed_is_looked_at_once_more_although_its_state_is_the_same(
    discovery: Discovery, client: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    whose = identity()
    job_id = await submit(spec(whose, hold=True))
    await discovery.refresh()
    changed = replace(whose, cause="Misfit")
    await jobs.amend_identity(client, job_id, whose, lambda _: changed)
    proxy.requests.clear()

    unaware = await discovery.refresh()
    discovery.note_changed(job_id)
    aware = await discovery.refresh()
    await discovery.refresh()

    assert [whose, changed] == [each.jobs[job_id].identity for each in (unaware, aware)]
    assert 1 == proxy.count("GET", f"{LOOK}{job_id}?")


async def test_reasons_are_read_again_for_whom_they_are_wanted(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    first, second = await submit(spec(hold=True)), await submit(spec(hold=True))
    await discovery.refresh()
    proxy.requests.clear()

    snapshot = await discovery.refresh(reasons_for={first, JobId(999_999)})

    assert "JobHeldUser" == snapshot.jobs[first].reason
    assert [1, 0] == [proxy.count("GET", f"{LOOK}{id_}?") for id_ in (first, second)]
    assert 1 == proxy.count("GET", LOOK)


async def test_readings_follow_each_other_and_say_when_they_began(discovery: Discovery) -> None:
    before = time.monotonic()
    first, second = await asyncio.gather(discovery.refresh(), discovery.refresh())

    assert (1, 2) == (first.sequence, second.sequence)
    assert before <= first.began_monotonic < second.began_monotonic <= time.monotonic()


async def test_looks_are_limited_in_number(
    watching: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    for _ in range(6):
        await submit(spec(hold=True))
    proxy.inject(faults.slow(0.1), "GET", LOOK, times=6)
    discovery = Discovery(watching, CLUSTER, clock=time.monotonic, pace=Pace(concurrency=2))
    await watching.dialect()

    began = time.monotonic()
    await discovery.refresh()

    assert time.monotonic() - began >= 0.3
