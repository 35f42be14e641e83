"""The long run: pods come and go at a steady rate, some stay, things go wrong; in the end both worlds are compared.

In the first half everything goes wrong; in the second half nothing that ends a process of ours, so that it can be said
how much these grow. That is measured twice, each time when all pods but those that stay are gone: after a warm-up that is
longer than Slurm remembers ended jobs (MinJobAge), and in the end.
"""

import asyncio
import contextlib
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sandbox.client import Sandbox
from sandbox.control import PartStatus
from sandbox.errors import SandboxError
from tests.fault_bench import FaultBench
from tests.soak import lives
from tests.soak.field import Field
from tests.soak.flood import Flood
from tests.soak.lives import Fate, Life
from tests.soak.weather import Weather

_RESIDENTS = 30
_AT_MOST_ALIVE = 500
"""With more, what an outage has held up fills the nodes, and every pod that waits for one costs several writes more."""
_SAY_EVERY_S = 10.0
_DRAINS_WITHIN_S = 120.0
_SETTLES_WITHIN_S = 420.0
_AUDITS_WITHIN_S = 600.0
_BETWEEN_FAULTS_S = (10.0, 25.0)
"""An API server that was away takes the leases with it, a dozen seconds each time: with less between the faults there is no churn."""
_HARSH_UNTIL = 0.5
_WARM_AT = 0.7
"""Shares of all pods."""
_READINGS = 5
_READ_EVERY_S = 2.0
_CATCHES_UP = 2.0
"""After an outage pods come faster than they should, by so much at most."""
_PATIENCE = 1.2
"""A run that takes so much longer than it should creates no more pods."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What one process held at some moment."""

    pid: int | None
    mib: float


@dataclass(slots=True)
class Result:
    """What came of it."""

    minutes: float
    """Asked for."""
    rate: float
    """Asked for."""
    seed: int
    took_s: float = 0
    """Until the last pod was created, without the time in which all had to be gone for a measurement."""
    created: int = 0
    most_alive: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    """By kind."""
    weather: list[str] = field(default_factory=list)
    ends: list[tuple[str, str, int]] = field(default_factory=list)
    """How pods have ended, what sacct says of that, and how many."""
    poison: list[str] = field(default_factory=list)
    """What odd objects were there."""
    breaches: list[str] = field(default_factory=list)
    warm: dict[str, Memory] = field(default_factory=dict)
    """By service."""
    over: dict[str, Memory] = field(default_factory=dict)

    @property
    def growth(self) -> Mapping[str, float]:
        """By service, 0.1 is 10 %; without those that were started anew in between."""
        return {
            name: self.over[name].mib / before.mib - 1
            for name, before in self.warm.items()
            if name in self.over and self.over[name].pid == before.pid
        }


async def live(
    bench: FaultBench,
    namespace: str,
    *,
    minutes: float,
    rate: float,
    seed: int,
    hang_every_s: float = 0,
    flood: Flood | None = None,
    sets_clocks: bool = False,
    say: Callable[[str], None],
) -> Result:
    """Run for so long, calm down, and compare both worlds.

    Args:
        bench: where.
        namespace: of its own.
        minutes: how long pods come.
        rate: pods a second.
        seed: of all that is drawn.
        hang_every_s: so often a service of ours stands still besides; 0: never.
        flood: another tenant's.
        sets_clocks: the services' clocks can be set (`clocks.adjustable`).
        say: told every few seconds how it goes.
    """
    dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
    weather = Weather(bench, random.Random(seed), flood=flood, sets_clocks=sets_clocks)  # noqa: S311
    result = Result(minutes=minutes, rate=rate, seed=seed)
    pace = Pace(rate=rate, pods=round(60 * minutes * rate), began_s=time.monotonic())
    over = asyncio.Event()

    async def watch() -> None:
        while not over.is_set():
            weather.is_gentle = pace.share > _HARSH_UNTIL
            alive = len(fields.tracked)
            result.most_alive = max(result.most_alive, alive)
            say(
                f"{time.monotonic() - pace.began_s:5.0f} s: {fields.tally.created} pods created,"
                f" {fields.tally.gone} gone, {alive} alive, {len(weather.story)} faults,"
                f" {len(fields.tally.breaches)} breaches"
            )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _SAY_EVERY_S)

    longest_s = (
        pace.ends_s - pace.began_s + _DRAINS_WITHIN_S + 2 * _SETTLES_WITHIN_S + _AUDITS_WITHIN_S
    )
    async with asyncio.timeout(longest_s), Field.on(bench.sandbox, namespace) as fields:
        async with asyncio.TaskGroup() as group:
            group.create_task(fields.tend(over))
            group.create_task(watch())
            storm = group.create_task(weather.changeable(over, _BETWEEN_FAULTS_S))
            besides = group.create_task(weather.besides(over, _BETWEEN_FAULTS_S))
            if hang_every_s:
                group.create_task(weather.standing_still(over, hang_every_s))
            for number in range(_RESIDENTS):
                group.create_task(fields.create(Life(name=f"stays-{number}", fate=Fate.STAYS)))
            await _come(fields, dice, pace, group, until=_WARM_AT)
            stopped_s = time.monotonic()
            await fields.drain(_DRAINS_WITHIN_S)
            result.warm = await _memory(bench.sandbox)
            pace.began_s += time.monotonic() - stopped_s
            await _come(fields, dice, pace, group, until=1)
            result.took_s = time.monotonic() - pace.began_s
            over.set()
            await besides
            await storm
            await weather.calm()
        say("calm; both worlds are compared")
        await fields.settle(_SETTLES_WITHIN_S)
        result.over = await _memory(bench.sandbox)
        await fields.clear(_SETTLES_WITHIN_S)
        say("sacct is asked for every pod that ended")
        await fields.audit()
        if flood:
            fields.tally.breaches += await asyncio.to_thread(flood.breaches, _DRAINS_WITHIN_S)
    result.created = fields.tally.created
    result.ends = [(*how, count) for how, count in fields.tally.ends.most_common()]
    result.weather, result.faults = weather.story, dict(Counter(weather.kinds))
    result.breaches = fields.tally.breaches
    return result


@dataclass(slots=True)
class Pace:
    """When which pod is due. What an outage held up is made up for, but not all at once."""

    rate: float
    pods: int
    began_s: float
    number: int = 0
    """Of the next."""

    @property
    def share(self) -> float:
        """Of all pods: how many were there."""
        return self.number / self.pods

    @property
    def ends_s(self) -> float:
        """No pod comes after this moment."""
        return self.began_s + _PATIENCE * self.pods / self.rate

    def due_s(self, last_s: float) -> float:
        """When the next pod is due, if the one before came at that moment. Both monotonic."""
        on_time_s = self.began_s + self.number / self.rate
        return max(on_time_s, last_s + 1 / (_CATCHES_UP * self.rate))


async def _come(
    fields: Field, dice: random.Random, pace: Pace, group: asyncio.TaskGroup, *, until: float
) -> None:
    """Create pods as they are due, until so many of all were there; a backlog is not driven without end."""
    last_s = time.monotonic()
    while pace.share < until and last_s < pace.ends_s:
        await asyncio.sleep(max(0, pace.due_s(last_s) - time.monotonic()))
        last_s = time.monotonic()
        if len(fields.tracked) < _AT_MOST_ALIVE:
            group.create_task(fields.create(lives.draw(dice, f"c-{pace.number}")))
            pace.number += 1


async def _memory(sandbox: Sandbox) -> dict[str, Memory]:
    """The medians of some readings, by service; a service that is not up is not among them."""
    readings = [await _reading(sandbox) for _ in range(_READINGS)]
    services = sandbox.instance.options.services
    parts = {name: [reading[name] for reading in readings if name in reading] for name in services}
    return {
        name: Memory(
            pid=found[-1].pid, mib=round(statistics.median(part.memory_mib for part in found), 1)
        )
        for name, found in parts.items()
        if found
    }


async def _reading(sandbox: Sandbox) -> Mapping[str, PartStatus]:
    await asyncio.sleep(_READ_EVERY_S)
    try:
        status = await asyncio.to_thread(sandbox.status)
    except SandboxError:  # it is busy with a restart
        return {}
    return {name: part for name, part in status.items() if part.state == "up"}
