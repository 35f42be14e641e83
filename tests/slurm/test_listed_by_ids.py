"""Slurm's own answers to a question by ids: together they are its whole list, arrays and heterogeneous jobs included."""

import pytest

from bridge.slurm import jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.listed import listing
from bridge.slurm.listed.listing import Lists
from sandbox.client import Sandbox
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import spec

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
    lists = Lists(client, arrays=True)
    await lists.read()

    await jobs.cancel(client, ids[0])
    await submit(spec(hold=True))
    slurm.run("sbatch", "--array=1-2", *HELD)
    by_ids = await lists.read()

    whole = await listing.whole(client, arrays=True)
    assert whole.states == by_ids.states
    assert {each.job_id for each in whole.told.listed} == {
        each.job_id for each in by_ids.told.listed
    }
    assert any("_" in each.job_id for each in whole.told.listed)
    assert any("+1" in each.job_id for each in whole.told.listed)
    assert by_ids is await lists.read()
