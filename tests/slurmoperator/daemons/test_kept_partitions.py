"""Partitions come and go while people submit jobs to them, and slurmctld gets each configuration some time later."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from slurmoperator.configuration import lines
from slurmoperator.configuration.partitions import SlurmPartitions
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.rendering.trying import LOG_PREFIX, WRITE_FILE
from slurmruntime.crd.metadata import ObjectMetadata
from tests.slurmoperator.daemons.peers import Leaders, controller, part
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

PARTITIONS = ("a", "b", "c")


class Slurm:
    """A slurmctld with the last configuration that its kubelet has brought, and jobs."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.states: dict[str, str] = {}
        self.jobs: dict[int, tuple[str, ...]] = {}
        """The live ones."""
        self.killed: list[int] = []
        self.submitted = 0
        self.is_away = False

    def reconfigure(self, text: str) -> None:
        self.states = {}
        for line in lines.read(text):
            first, *others = line.settings
            if first.key == "PartitionName":
                state = next((other.value for other in others if other.key == "State"), "UP")
                self.states[first.value] = state
        for job, wanted in list(self.jobs.items()):
            if not set(wanted) & set(self.states):
                self.killed.append(job)
                del self.jobs[job]

    def submit(self, *wanted: str) -> int:
        if not all(self.states.get(name) in ("UP", "DOWN") for name in wanted):
            return 0
        self.submitted += 1
        self.jobs[self.submitted] = wanted
        return self.submitted

    async def call(self, _label: str, _operation: str, *, answer: Any, **_: Any) -> Any:
        if self.is_away:
            raise OSError("away")
        listed = [
            {"name": name, "partition": {"state": [state]}} for name, state in self.states.items()
        ]
        return msgspec.convert({"partitions": listed}, answer)

    async def each_of(
        self,
        _label: str,
        operation: str,
        *_: Any,
        take: Callable[[bytes], None],
        answer: Any,
        **__: Any,
    ) -> Any:
        """All jobs, of which one has ended; or all nodes, of which one worker has gone."""
        if self.is_away:
            raise OSError("away")
        if operation == "slurm_get_nodes":
            take(b'{"name": "a", "state": ["IDLE"]}')
            take(b'{"name": "b", "state": ["IDLE", "DRAIN"]}')
            return msgspec.json.decode(b'{"nodes": []}', type=answer)
        states = {0: "RUNNING", 1: "PENDING"}
        for job, wanted in self.jobs.items():
            body = {"job_id": job, "job_state": [states[job % 2]], "partition": ",".join(wanted)}
            take(msgspec.json.encode(body))
        take(msgspec.json.encode({"job_id": 10**6, "job_state": ["COMPLETED"], "partition": ""}))
        return msgspec.json.decode(b'{"jobs": []}', type=answer)


def extra(*names: str) -> dict[str, str]:
    return {"extraConf": "".join(f"PartitionName={name} Nodes=ALL\n" for name in names)}


def text_of(leaders: Leaders) -> str:
    """What the kubelet has brought; slurmctld takes it, and its side-car says so."""
    maps = leaders.api.of("ConfigMap")
    kept = maps["site-config-wanted" if "site-config-wanted" in maps else "site-config"]["data"]
    data = {name: text for name, text in kept.items() if name != WRITE_FILE}
    digest = ConfigurationSet(files=data).digest
    verdict = f"{LOG_PREFIX} taken {digest} {kept.get(WRITE_FILE)} \n"
    leaders.api.slurmctlds = {"site-controller-0": verdict}
    return str(data["slurm.conf"])


async def led(leaders: Leaders, slurm: Slurm) -> None:
    """Lead while the kubelet brings files every ten seconds."""

    def sync() -> None:
        slurm.reconfigure(text_of(leaders))

    await leaders.lead(then={10.0 * at: sync for at in range(1, 20)})


def test_a_partition_with_a_job_stays_and_goes_after_it() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders, slurm = Leaders(clock), Slurm(random.Random(1))  # noqa: S311  # no secret
        leaders.slurm = slurm
        leaders.api.put(controller(**extra("a", "b")))
        await led(leaders, slurm)
        job = slurm.submit("a")

        leaders.api.change("Controller", "site", **extra("b"))
        await led(leaders, slurm)
        assert "DOWN" == slurm.states["a"]
        truth, reason, said = leaders.api.condition("Controller", "Configured")
        assert ("True", "PartitionsKept") == (truth, reason)
        assert "scancel --partition=a" in said
        assert slurm.submit("a")  # it may still come to nothing, but to no harm

        slurm.is_away = True
        slurm.jobs.clear()
        await led(leaders, slurm)
        assert "DOWN" == slurm.states["a"]
        assert "not known" in leaders.api.condition("Controller", "Configured")[2]

        slurm.is_away = False
        await led(leaders, slurm)
        assert ["b"] == list(slurm.states)
        assert "InForce" == leaders.api.condition("Controller", "Configured")[1]
        assert [] == slurm.killed
        assert job

    run(main)


def test_a_younger_node_set_of_the_same_names_is_left_out_and_blocks_nobody() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller(**extra("a")))
        for name, hostname, minute in (("first", "cpu-", 1), ("second", "cpu-1", 2)):
            template = {"spec": {"hostname": hostname}}
            made = part("NodeSet", name, template=template, ssh=..., extraConf=...)
            made["metadata"]["creationTimestamp"] = f"2026-01-01T00:0{minute}:00Z"
            leaders.api.put(made)
        await led(leaders, Slurm(random.Random(1)))  # noqa: S311  # no secret

        assert "NodeSet=cpu Feature=cpu\n" in text_of(leaders)
        assert "cpu-1" not in text_of(leaders)
        assert "InForce" == leaders.api.condition("Controller", "Configured")[1]

    run(main)


def test_without_a_slurmrestd_it_stays_and_nothing_is_written_twice() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders, slurm = Leaders(clock), Slurm(random.Random(1))  # noqa: S311  # no secret
        leaders.api.put(controller(**extra("a", "b")))
        await led(leaders, slurm)
        leaders.api.change("Controller", "site", **extra("b"))
        await led(leaders, slurm)
        assert "PartitionName=a State=DOWN" in text_of(leaders)
        assert "it has no RestApi" in leaders.api.condition("Controller", "Configured")[2]

        count = len(leaders.trouble.writes)
        await led(leaders, slurm)
        assert [] == [write for write in leaders.trouble.writes[count:] if "/status" not in write]

    run(main)


def test_a_reading_that_nobody_has_used_in_time_is_not_sure() -> None:
    async def main(clock: VirtualClock) -> None:
        stop, slurm = asyncio.Event(), Slurm(random.Random(1))  # noqa: S311  # no secret

        @asynccontextmanager
        async def opens(_: str) -> AsyncIterator[Any]:
            yield slurm

        readings = PartitionReadings(opens, clock=clock, wake=lambda _: None)
        site, nothing = ObjectMetadata(name="site", namespace="slurm", uid="1"), frozenset[str]()

        def latest() -> SlurmPartitions:
            seen = readings.last("1").of(nothing)
            readings.request(site, nothing)
            return seen

        async with asyncio.TaskGroup() as group:
            group.create_task(readings.run(stop))
            assert latest().trouble
            await clock.sleep(1)
            seen = latest()
            assert (True, 0, 1) == (seen.is_sure, seen.live, seen.open_nodes), seen
            await clock.sleep(60)
            assert not latest().is_sure
            await clock.sleep(12)
            assert latest().is_sure
            stop.set()

    run(main)


@pytest.mark.parametrize("seed", range(30))
def test_no_job_ends_by_a_partition_that_goes(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again

    async def main(clock: VirtualClock) -> None:
        leaders, slurm = Leaders(clock), Slurm(dice)
        leaders.slurm = slurm
        leaders.api.put(controller(**extra(*PARTITIONS)))

        def sync() -> None:
            slurm.reconfigure(text_of(leaders))

        def submit() -> None:
            slurm.submit(*dice.sample(PARTITIONS, dice.randint(1, 2)))

        def end() -> None:
            if slurm.jobs:
                del slurm.jobs[dice.choice(list(slurm.jobs))]

        def change() -> None:
            wanted = dice.sample(PARTITIONS, dice.randint(0, 3))
            leaders.api.change("Controller", "site", **extra(*wanted))

        def away() -> None:
            slurm.is_away = not slurm.is_away

        steps: list[Callable[[], None]] = [sync, sync, submit, submit, submit, end, change, away]
        for _ in range(3):
            at_s = sorted(dice.uniform(6, 290) for _ in range(60))
            await leaders.lead(for_s=300, then={each: dice.choice(steps) for each in at_s})
        assert slurm.submitted
        assert [] == slurm.killed

        slurm.is_away = False
        slurm.jobs.clear()
        leaders.api.change("Controller", "site", **extra("b"))
        await led(leaders, slurm)
        assert ["b"] == list(slurm.states)

    run(main)
