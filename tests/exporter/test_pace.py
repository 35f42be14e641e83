"""How often Slurm is asked, how long readings count, and that one odd source costs itself."""

import asyncio
from typing import Any

import pytest

from slurmclient import Client, LostReply
from slurmclient.fake import DOWN, LOST_REPLY, FakeSlurm
from slurmclient.models import Share
from slurmexporter.collecting.collector import Collector
from slurmexporter.collecting.jobs import JobCollector
from slurmexporter.collecting.journal import Journal
from slurmexporter.collecting.latest import Latest
from slurmexporter.collecting.pace import Pace, adapt
from slurmexporter.serving.pages import Pages
from slurmexporter.settings import Settings
from tests.exporter.records import samples


def paced(*looks: tuple[float | None, int]) -> list[float]:
    pace, factors = Pace(), []
    for seconds, threads in looks:
        pace = adapt(pace, seconds=seconds, threads=threads, most=4.0)
        factors.append(pace.factor)
    return factors


@pytest.mark.parametrize("slow", [(1.5, 3), (0.01, 200), (None, 0)])
def test_a_slow_slurmctld_is_asked_less_at_once_and_more_again_slowly(
    slow: tuple[float | None, int],
) -> None:
    calm = (0.01, 3)
    assert [1, 2, 4, 4] == paced(calm, slow, slow, slow)
    assert [2, 4, 4, 4, 2, 2, 2, 1, 1] == paced(slow, slow, *[calm] * 7)


def test_a_reading_counts_until_it_is_stale() -> None:
    now, shares = [0.0], [Share(name="b")]
    latest = Latest(Settings(interval_s=10, stale_after_s=30), lambda: now[0])
    latest.put("nodes", ["a"], began_s=0)
    latest.put("shares", shares, began_s=0)
    versions = latest.versions(("nodes",))
    now[0] = 25
    latest.put("nodes", None, began_s=20)
    assert versions == latest.versions(("nodes",)), "nothing has changed"
    now[0] = 51
    assert None is latest.versions(("nodes",))
    assert None is latest.picture().nodes
    assert shares == latest.picture().shares, "it is read every fourth interval"
    assert {"nodes": 31, "shares": 51} == latest.ages_s()


async def test_jobs_are_read_one_by_one_where_a_list_takes_too_long() -> None:
    async with FakeSlurm(nodes=3) as fake, Client(fake.url, token="any", attempts=1) as slurm:  # noqa: S106  # the fake takes any
        for _ in range(3):
            await slurm.jobs.submit("#!/bin/sh\n", name="a")
        fake.fail_next("slurm_get_jobs", LOST_REPLY, times=100)
        jobs = JobCollector(slurm, Settings(), Journal())
        with pytest.raises(LostReply):
            await jobs.read(pace=1)
        reading = await jobs.read(pace=1)
    assert (3, {}) == (sum(cell.tasks for cell in reading.cells), reading.tally.submits)


async def test_a_source_that_fails_costs_itself() -> None:
    settings = Settings(has_accounting=False)
    async with FakeSlurm(nodes=3) as fake, Client(fake.url, token="any", attempts=1) as slurm:  # noqa: S106  # the fake takes any
        fake.fail_next("slurm_get_nodes", DOWN, times=10)
        journal, clock = Journal(), asyncio.get_running_loop().time
        latest = Latest(settings, clock)
        pages = Pages(latest, settings)
        collector = Collector(
            slurm, settings, journal=journal, latest=latest, on_news=pages.refresh
        )

        async def crashes(**_: Any) -> Any:
            raise ZeroDivisionError

        collector._reads["licenses"] = crashes
        await collector.read_once()
        page = samples(b"".join(part.plain for part in await pages.page("own")))
    assert "slurm_jobs_by_state" in page
    assert not {"slurm_nodes_by_state", "slurm_license_total"} & page.keys()
    outcomes = {source: journal.last_outcome[source] for source in ("jobs", "nodes", "licenses")}
    assert {"jobs": "ok", "nodes": "unavailable", "licenses": "crash"} == outcomes
