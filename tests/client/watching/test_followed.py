"""What a watch of jobs costs, and what it does not mistake for a change."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slurmclient import Added, Client, Deleted, Modified, Restarted
from slurmclient.fake import FakeSlurm
from slurmclient.watching import listing
from slurmclient.watching.job_picture import JobPicture
from tests.client.conftest import Row
from tests.client.looking import ticks


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurm]:
    async with FakeSlurm(nodes=2) as running:
        yield running


@pytest.fixture
async def client(fake: FakeSlurm) -> AsyncIterator[Client]:
    async with Client(fake.url, token="any", attempts=1) as opened:  # noqa: S106  # of a fake
        yield opened


@pytest.fixture
def picture(client: Client) -> JobPicture[Row]:
    return JobPicture(client.speaker, Row, ticks(), resync_s=1e9)


def asked(fake: FakeSlurm) -> list[str]:
    """The operations since the last question."""
    operations = [operation.removeprefix("slurm_get_") for operation, _ in fake.calls]
    fake.calls.clear()
    return operations


async def test_a_poll_reads_the_states_and_then_only_the_job_that_has_changed(
    fake: FakeSlurm, client: Client, picture: JobPicture[Row]
) -> None:
    ids = [(await client.jobs.submit(name="one", hold=True)).job_id for _ in range(3)]
    assert 3 == len(await picture.poll())
    asked(fake)

    assert [] == await picture.poll()
    assert ["jobs_state", "diag"] == asked(fake)
    await client.jobs.cancel(ids[1])
    asked(fake)
    assert [Modified] == [type(event) for event in await picture.poll()]
    assert ["jobs_state", "diag", "job"] == asked(fake)
    fake.forget(ids[1])
    assert [Deleted] == [type(event) for event in await picture.poll()]
    assert ["jobs_state", "diag"] == asked(fake)


async def test_counters_that_start_again_at_midnight_have_no_job_listed(
    fake: FakeSlurm, client: Client, picture: JobPicture[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    booted = {"BOOT_TIME": 100}
    conf = {"slurm_conf": {"controllers": ["one"]}, "slurm_conf_meta": booted}
    monkeypatch.setattr(fake, "slurm_get_conf", lambda _: conf, raising=False)
    await client.jobs.submit(name="one", hold=True)
    await picture.poll()
    asked(fake)

    fake.restart()
    assert [] == await picture.poll()
    assert ["jobs_state", "diag", "conf"] == asked(fake)

    booted["BOOT_TIME"] = 200
    fake.restart(wipe=True)
    await client.jobs.submit(name="other", hold=True)
    events = await picture.poll()
    assert [Restarted, Deleted, Added] == [type(event) for event in events]
    assert "other" == picture.objects["1"].name


async def test_very_many_jobs_are_asked_for_by_their_ids(
    fake: FakeSlurm, client: Client, picture: JobPicture[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "AT_ONCE", 2)
    next_id = {"set": True, "infinite": False, "number": 5}
    conf = {"slurm_conf": {"MaxJobId": 99}, "slurm_conf_meta": {"NEXT_JOB_ID": next_id}}
    monkeypatch.setattr(fake, "slurm_get_conf", lambda _: conf, raising=False)
    ids = [(await client.jobs.submit(name="one", hold=True)).job_id for _ in range(4)]
    await picture.poll()
    await client.jobs.cancel(ids[0])
    wanted: list[Any] = []
    list_states = fake.slurm_get_jobs_state

    def listed(request: Any) -> Any:
        wanted.append(request.query.get("job_id"))
        return list_states(request)

    monkeypatch.setattr(fake, "slurm_get_jobs_state", listed)

    (event,) = await picture.poll()

    assert isinstance(event, Modified)
    assert ids[0] == event.new.job_id
    assert [[str(id_) for id_ in ids]] == wanted


async def test_a_task_outlives_the_record_of_its_array(
    fake: FakeSlurm, picture: JobPicture[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm lists each task by the id of its own record, and forgets each by itself."""
    tasks = {8: 3, 9: 1, 10: 2}

    def job(id_: int) -> dict[str, Any]:
        return {"job_id": id_, "array_job_id": 8, "job_state": ["RUNNING"], "submit_time": 100}

    monkeypatch.setattr(fake, "slurm_get_jobs", lambda _: {"jobs": [job(id_) for id_ in tasks]})
    monkeypatch.setattr(
        fake,
        "slurm_get_jobs_state",
        lambda _: {
            "jobs": [
                {"job_id": f"{id_}_{task}", "state": ["RUNNING"]} for id_, task in tasks.items()
            ]
        },
    )
    assert 3 == len(await picture.poll())

    del tasks[8]

    (event,) = await picture.poll()
    assert isinstance(event, Deleted)
    assert 8 == event.old.job_id
    assert {"9", "10"} == picture.objects.keys()


async def test_a_job_that_is_listed_but_cannot_be_read_is_not_asked_for_again(
    fake: FakeSlurm, client: Client, picture: JobPicture[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user's, where PrivateData hides it."""
    await picture.poll()
    await client.jobs.submit(name="hidden", hold=True)
    monkeypatch.setattr(fake, "slurm_get_job", lambda _: {"jobs": []})
    asked(fake)

    assert [] == await picture.poll()
    assert ["jobs_state", "diag", "job"] == asked(fake)
    assert [] == await picture.poll()
    assert ["jobs_state", "diag"] == asked(fake)
