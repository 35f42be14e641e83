"""Where many jobs are to be read, one list says the same as a GET of each, and without it each is read."""

import time
from collections.abc import Iterable

import pytest

from bridge.domain.ids import ClusterId, JobId
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.slurm import jobs, records
from bridge.slurm.client import SlurmClient
from bridge.slurm.discovery import Discovery
from bridge.slurm.errors import SlurmError
from tests.faults import Fault, Proxy
from tests.slurm.conftest import Submit
from tests.slurm.discovering import GARBAGE, LOOK, UNWELL
from tests.slurm.placeholders import CLUSTER, identity, in_phase, spec

LIST = "/jobs/?"
FEW = 4


@pytest.fixture(autouse=True)
def few_are_many(read_one_by_one: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FEWEST_LISTED", FEW)


@pytest.mark.parametrize(
    ("wanted", "of", "expected"),
    [
        (FEW, FEW, True),
        (FEW - 1, FEW - 1, False),
        (10, 50, True),
        (10, 51, False),
        (1000, 2000, True),
        (1000, 2001, False),
    ],
)
def test_a_list_is_asked_for_where_it_is_cheaper(wanted: int, of: int, expected: bool) -> None:
    assert expected == records.pays(wanted, of)


async def test_a_list_says_what_a_get_of_each_says(
    watching: SlurmClient, client: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    held = [await submit(spec(hold=True)) for _ in range(FEW)]
    runs = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    of_two_parts = await submit(spec(hold=True, also=(spec(hold=True),)))
    of_another = await submit(spec(identity(cluster=ClusterId("another")), hold=True))

    found = (await Discovery(watching, CLUSTER, clock=time.monotonic).refresh()).jobs

    ours = [*held, runs.id, of_two_parts]
    assert [await jobs.job(client, id_) for id_ in ours] == [found[id_] for id_ in ours]
    assert of_another not in found
    assert 1 == proxy.count("GET", LIST)
    assert [*[0] * len(held), 0, 1] == looks(proxy, ours)


@pytest.mark.parametrize("fault", [UNWELL, GARBAGE], ids=["refused", "no list"])
async def test_without_a_list_each_is_read(
    watching: SlurmClient, submit: Submit, proxy: Proxy, fault: Fault
) -> None:
    held = [await submit(spec(hold=True)) for _ in range(FEW)]
    proxy.inject(fault, "GET", LIST)

    found = (await Discovery(watching, CLUSTER, clock=time.monotonic).refresh()).jobs

    assert set(held) <= found.keys()
    assert [1] * FEW == looks(proxy, held)


async def test_a_job_that_a_list_leaves_out_is_read_by_itself(
    watching: SlurmClient, submit: Submit, proxy: Proxy
) -> None:
    parts = (await submit(spec(hold=True)), await submit(spec(hold=True)))
    missing = JobId(max(parts) + 1000)

    listed = await records.listed(
        watching, {*parts, *map(JobId, range(missing, missing + FEW))}, of=FEW
    )

    assert set(parts) == listed.keys()
    for id_ in parts:
        assert isinstance(await jobs.job(watching, id_, read=listed[id_]), SlurmJob)
    assert [0, 0] == looks(proxy, parts)
    with pytest.raises(SlurmError):
        await jobs.job(watching, missing, read=listed.get(missing, ()))


def looks(proxy: Proxy, ids: Iterable[JobId]) -> list[int]:
    return [proxy.count("GET", f"{LOOK}{id_}?") for id_ in ids]
