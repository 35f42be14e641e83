"""Discovery while answers get lost, are garbage or contradict each other."""

import asyncio
from typing import Any

import pytest

from bridge.slurm import encode, jobs
from bridge.slurm.discovery import Discovery
from sandbox.client import Sandbox
from slurmclient.errors import LostReply, SlurmError
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId
from tests import faults
from tests.faults import Proxy
from tests.slurm.conftest import Submit
from tests.slurm.discovering import GARBAGE, LOOK, STATES, UNWELL
from tests.slurm.placeholders import CLUSTER, identity, spec

NOT_STARTED = '{"statistics":{"req_time_start":{"set":true,"number":0}}}'


async def test_a_submit_whose_reply_got_lost_is_found(
    discovery: Discovery, watching: SlurmClient, proxy: Proxy, client: SlurmClient
) -> None:
    await discovery.refresh()
    whose = identity()
    proxy.inject(faults.LOST_REPLY, "POST", "/job/submit")
    with pytest.raises(LostReply):
        await jobs.submit(watching, spec(whose, hold=True))

    (found,) = (await discovery.refresh()).by_key[whose.key]

    assert whose == found.identity
    await jobs.cancel(client, found.id)


async def test_while_slurmctld_does_not_say_when_it_started_every_job_may_be_another(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    """A slurmctld that is killed in its first second, too, is followed by one that says the same."""
    await submit(spec(identity(), hold=True))
    proxy.inject(faults.answers(200, NOT_STARTED), "GET", "/diag", times=2)
    await discovery.refresh()
    proxy.requests.clear()

    await discovery.refresh()

    assert 1 <= proxy.count("GET", LOOK)


async def counts_since(client: SlurmClient) -> int | None:
    """Since when slurmctld counts."""
    told = await client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
    return told.statistics.req_time_start.positive


async def test_what_resets_its_counters_is_no_other_slurmctld(
    slurm: Sandbox, client: SlurmClient, discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    """It does so at each midnight UTC, too; all jobs, those of others included, were read again then."""
    held = await submit(spec(identity(), hold=True))
    await discovery.refresh()
    since = await counts_since(client)
    await asyncio.sleep(1.1)  # it tells in whole seconds
    await asyncio.to_thread(slurm.run, "sdiag", "--reset")
    assert since != await counts_since(client)
    proxy.requests.clear()

    await discovery.refresh()

    assert 1 == proxy.count("GET", "/diag")
    assert 0 == proxy.count("GET", f"/job/{held}")


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        pytest.param(STATES, UNWELL, id="500 for the list"),
        pytest.param("/diag", UNWELL, id="500 for the start"),
        pytest.param(LOOK, UNWELL, id="500 for a job"),
        pytest.param(STATES, GARBAGE, id="garbage for the list"),
        pytest.param("/diag", GARBAGE, id="garbage for the start"),
    ],
)
async def test_a_reading_that_is_not_whole_raises_and_the_next_one_goes_on_where_it_stopped(
    discovery: Discovery, submit: Submit, proxy: Proxy, path: str, fault: faults.Fault
) -> None:
    whose = identity()
    await discovery.refresh()
    await submit(spec(whose, hold=True))
    proxy.inject(fault, "GET", path)
    with pytest.raises(SlurmError):
        await discovery.refresh()
    proxy.requests.clear()

    snapshot = await discovery.refresh()

    assert 1 == len(snapshot.by_key[whose.key])
    assert 1 == proxy.count("GET", LOOK)
    assert 2 == snapshot.sequence


async def test_garbage_for_one_job_sets_that_job_aside_until_the_next_reading(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    await discovery.refresh()
    job_id = await submit(spec(hold=True))
    proxy.inject(GARBAGE, "GET", LOOK)

    first, second = await discovery.refresh(), await discovery.refresh()

    assert (True, False) == (job_id in first.unreadable, first.is_whole)
    assert (True, True) == (job_id in second.jobs, second.is_whole)


async def test_a_job_gone_between_the_list_and_the_look_is_no_error(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    await discovery.refresh()
    job_id = await submit(spec(hold=True))
    gone = '{"errors":[{"error_number":2017}]}'
    proxy.inject(faults.answers(404, gone), "GET", f"{LOOK}{job_id}")

    assert job_id not in (await discovery.refresh()).jobs
    assert job_id in (await discovery.refresh()).jobs


async def test_a_mark_of_another_version_is_neither_ours_nor_a_strangers(
    discovery: Discovery, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = encode.submission

    def newer(document: Any) -> dict[str, object]:
        body: dict[str, Any] = honest(document)
        body["job"]["admin_comment"] = f'{{"slurm-bridge":99,"cluster":"{CLUSTER}"}}'
        return body

    monkeypatch.setattr(encode, "submission", newer)
    job_id = await submit(spec(hold=True))

    snapshot = await discovery.refresh()

    assert job_id not in snapshot.jobs
    assert snapshot.unreadable[job_id]


async def test_a_job_that_became_ours_is_not_taken_for_the_stranger_it_was(
    discovery: Discovery, submit: Submit, proxy: Proxy
) -> None:
    """As after a crash of slurmctld that nobody has noticed yet: the id of a stranger is given to our submit."""
    whose = identity()
    job_id = await submit(spec(identity(cluster=ClusterId("another")), hold=True))
    await discovery.refresh()

    discovery.note_submitted(job_id, whose)

    assert whose == (await discovery.refresh()).jobs[job_id].identity
