"""What Slurm is not asked again: nodes while only jobs change, each waiting job where one list tells of all."""

from collections import Counter

import pytest

from slurmclient import Client, SlurmError
from slurmclient.fake import DOWN, FakeSlurm
from slurmexporter.collecting.collector import Collector
from slurmexporter.collecting.jobs import JobCollector
from slurmexporter.collecting.journal import Journal
from slurmexporter.collecting.latest import Latest
from slurmexporter.collecting.sources import Sources
from slurmexporter.families.picture import JobsReading
from slurmexporter.settings import Settings


@pytest.mark.parametrize(
    ("settings", "pause_s"),
    [
        pytest.param(Settings(), 45, id="three intervals"),
        pytest.param(Settings(interval_s=10, stale_after_s=40), 20, id="two may fail before"),
        pytest.param(Settings(interval_s=10, stale_after_s=15), 0, id="it would be stale"),
    ],
)
async def test_nodes_that_only_jobs_change_are_listed_less_often(
    settings: Settings, pause_s: float
) -> None:
    async with FakeSlurm(nodes=3) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # the fake takes any
        sources = Sources(slurm, settings, Journal())
        pauses = []

        async def listed() -> None:
            await sources.nodes()
            pauses.append(sources.pause_s("nodes"))

        await listed()
        await slurm.jobs.submit("#!/bin/sh\n", name="a")
        await listed()
        await slurm.nodes.drain("node-1", reason="fan")
        await listed()
        await slurm.jobs.submit("#!/bin/sh\n", name="b")
        await listed()
    assert [0, pause_s, 0, pause_s] == pauses


async def test_the_next_reading_of_nodes_waits_for_that() -> None:
    settings = Settings(has_accounting=False)
    async with FakeSlurm(nodes=3) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # the fake takes any

        async def ignored() -> None:
            pass

        latest = Latest(settings, lambda: 0.0)
        collector = Collector(slurm, settings, journal=Journal(), latest=latest, on_news=ignored)
        await collector.read_once()
        await slurm.jobs.submit("#!/bin/sh\n", name="a")
        await collector.read_once()
        assert (45, 15) == (collector.every_s("nodes"), collector.every_s("partitions"))
        fake.fail_next("slurm_get_nodes", DOWN, times=10)
        await collector.read_once()
        assert 15 == collector.every_s("nodes"), "it is tried again at once"


class Waiting:
    """Many jobs wait, and time passes."""

    def __init__(self, fake: FakeSlurm, slurm: Client, *, reason_rate: float) -> None:
        self._fake = fake
        self.now_s = 1000.0
        settings = Settings(reason_rate=reason_rate)
        self.jobs = JobCollector(slurm, settings, Journal(), wall=lambda: self.now_s)

    async def after(self, seconds: float) -> Counter[str]:
        """Return what Slurm was asked for reasons after so many seconds."""
        self.now_s += seconds
        before = len(self._fake.calls)
        await self.jobs.read_reasons(1.0, pace=1)
        return Counter(name for name, _ in self._fake.calls[before:])

    async def read(self) -> JobsReading:
        return await self.jobs.read(pace=1)


async def test_reasons_of_most_jobs_are_listed_as_often_as_the_budget_allows() -> None:
    async with FakeSlurm(nodes=1) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # the fake takes any
        ids = [(await slurm.jobs.submit(name="a", hold=True)).job_id for _ in range(40)]
        waiting = Waiting(fake, slurm, reason_rate=2)
        reading = await waiting.read()
        assert {"JobHeldUser": 40} == reasons(reading)

        await slurm.jobs.submit("#!/bin/sh\n", name="first")
        await waiting.read()
        await slurm.jobs.release(ids[0])
        assert not await waiting.after(19.9), "40 jobs, 2 a second"
        assert {"slurm_get_jobs": 1} == await waiting.after(0.2)
        assert not await waiting.after(1)
        reading = await waiting.read()
    assert {"JobHeldUser": 39, "Resources": 1} == reasons(reading)
    assert pytest.approx(1.0) == reading.reason_age_s


async def test_a_list_of_reasons_that_fails_is_not_asked_for_at_once() -> None:
    async with FakeSlurm(nodes=1) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # the fake takes any
        for _ in range(40):
            await slurm.jobs.submit(name="a", hold=True)
        waiting = Waiting(fake, slurm, reason_rate=2)
        await waiting.read()
        await waiting.after(0)
        fake.fail_next("slurm_get_jobs", DOWN, times=100)
        with pytest.raises(SlurmError):
            await waiting.after(20)
        assert not await waiting.after(19)
        with pytest.raises(SlurmError):
            await waiting.after(1)


async def test_reasons_of_few_jobs_are_read_singly() -> None:
    async with FakeSlurm(nodes=60) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # the fake takes any
        for number in range(60):
            await slurm.jobs.submit("#!/bin/sh\n", name="a", hold=number < 10)
        waiting = Waiting(fake, slurm, reason_rate=4)
        await waiting.read()
        assert not await waiting.after(14), "they are shown every 15 s"
        assert {"slurm_get_job": 4} == await waiting.after(1)
        assert {"slurm_get_job": 4} == await waiting.after(1)
        assert {"slurm_get_job": 2} == await waiting.after(1)
        assert not await waiting.after(1)


async def test_a_job_that_goes_while_reasons_are_listed_is_not_counted_again() -> None:
    async with FakeSlurm(nodes=1) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # the fake takes any
        ids = [(await slurm.jobs.submit(name="a", hold=True)).job_id for _ in range(40)]
        waiting = Waiting(fake, slurm, reason_rate=4)
        await waiting.read()
        listed = waiting.jobs._list_jobs

        async def purged() -> object:
            found = await listed()
            await slurm.jobs.cancel(ids[0])
            fake.forget(ids[0])
            await waiting.read()
            return found

        waiting.jobs._list_jobs = purged  # type: ignore[method-assign, assignment]  # what happens meanwhile
        assert 1 == (await waiting.after(15))["slurm_get_jobs"]
        reading = await waiting.read()
    assert 39 == sum(cell.tasks for cell in reading.cells)
    assert 1 == sum(reading.tally.ends.values())


def reasons(reading: JobsReading) -> dict[str, int]:
    found: Counter[str] = Counter()
    for cell in reading.cells:
        if cell.traits.reason:
            found[cell.traits.reason] += cell.tasks
    return dict(found)
