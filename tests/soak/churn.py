"""The long run: pods come and go at a steady rate, some stay, things go wrong; in the end both worlds are compared.

In the first half everything goes wrong; in the second half nothing that ends a process of ours. What they hold in
memory when Slurm has begun to forget jobs as fast as they come (MinJobAge, 5 minutes) is compared with what they hold
in the end.
"""

import asyncio
import contextlib
import itertools
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from tests.fault_bench import FaultBench
from tests.soak import lives
from tests.soak.field import Field
from tests.soak.lives import Fate, Life
from tests.soak.weather import Weather

SERVICES = ("webhook", "extender", "controllers")
_RESIDENTS = 30
_AT_MOST_ALIVE = 800
_SAMPLE_EVERY_S = 10.0
_SETTLES_WITHIN_S = 420.0
_HARSH_UNTIL = 0.5
_WINDOWS = ((0.68, 0.76), (0.92, 1.0))
"""Shares of the time whose memory is compared."""


@dataclass(slots=True)
class Result:
    """What came of it."""

    minutes: float
    rate: float
    seed: int
    created: int = 0
    ended: int = 0
    most_alive: int = 0
    weather: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
    memory_mib: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By service: in the second half, in the end; without those that were started anew in between."""

    @property
    def growth(self) -> Mapping[str, float]:
        """By service: 0.1 is 10 %."""
        return {name: end / middle - 1 for name, (middle, end) in self.memory_mib.items()}


@dataclass(frozen=True, slots=True)
class _Sample:
    share: float
    pid: int | None
    memory_mib: float


async def live(
    bench: FaultBench,
    namespace: str,
    *,
    minutes: float,
    rate: float,
    seed: int,
    say: Callable[[str], None],
) -> Result:
    """Run for so long, calm down, and compare both worlds.

    Args:
        bench: where.
        namespace: of its own.
        minutes: how long pods come.
        rate: pods a second.
        seed: of all that is drawn.
        say: told once a minute how it goes.
    """
    dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
    weather = Weather(bench, random.Random(seed))  # noqa: S311
    result = Result(minutes=minutes, rate=rate, seed=seed)
    samples: dict[str, list[_Sample]] = {name: [] for name in SERVICES}
    began, over = time.monotonic(), asyncio.Event()
    end = began + 60 * minutes

    def share() -> float:
        return (time.monotonic() - began) / (60 * minutes)

    async def measure() -> None:
        while not over.is_set():
            weather.is_gentle = share() > _HARSH_UNTIL
            await _sample(bench.sandbox, samples, share())
            alive = len(fields.tracked)
            result.most_alive = max(result.most_alive, alive)
            say(
                f"{60 * minutes * share():5.0f} s: {fields.tally.created} pods created,"
                f" {fields.tally.gone} gone, {alive} alive, {len(weather.story)} faults,"
                f" {len(fields.tally.breaches)} breaches"
            )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _SAMPLE_EVERY_S)

    async with Field.on(bench.sandbox, namespace) as fields:
        async with asyncio.TaskGroup() as group:
            group.create_task(fields.tend(over))
            group.create_task(measure())
            storm = group.create_task(weather.changeable(over, (2, 10)))
            for number in range(_RESIDENTS):
                group.create_task(fields.create(Life(name=f"stays-{number}", fate=Fate.STAYS)))
            await _come(fields, dice, rate, end, group)
            over.set()
            await storm
        say("calm; both worlds are compared")
        await fields.settle(_SETTLES_WITHIN_S)
        await fields.clear(_SETTLES_WITHIN_S)
        await fields.audit()
    result.created, result.ended = fields.tally.created, fields.tally.gone
    result.weather, result.breaches = weather.story, fields.tally.breaches
    result.memory_mib = {
        name: compared for name in SERVICES if (compared := _compared(samples[name])) is not None
    }
    return result


async def _come(
    fields: Field, dice: random.Random, rate: float, end: float, group: asyncio.TaskGroup
) -> None:
    """Create pods at the rate; an outage is not made up for, and a backlog is not driven without end."""
    due = time.monotonic()
    for number in itertools.count():
        if time.monotonic() > end:
            return
        if len(fields.tracked) < _AT_MOST_ALIVE:
            group.create_task(fields.create(lives.draw(dice, f"c-{number}")))
        due = max(due + 1 / rate, time.monotonic() - 1)
        await asyncio.sleep(max(0, due - time.monotonic()))


async def _sample(sandbox: Sandbox, samples: dict[str, list[_Sample]], share: float) -> None:
    try:
        status = await asyncio.to_thread(sandbox.status)
    except SandboxError:  # it is busy with a restart
        return
    for name, kept in samples.items():
        part = status[name]
        if part.state == "up":
            kept.append(_Sample(share, part.pid, part.memory_mib))


def _compared(samples: list[_Sample]) -> tuple[float, float] | None:
    """The medians of both windows; None where there is nothing to compare: no samples, or another process in between."""
    windows = [[s for s in samples if low <= s.share <= high] for low, high in _WINDOWS]
    pids = {sample.pid for window in windows for sample in window}
    if not all(windows) or len(pids) != 1:
        return None
    middle, end = (statistics.median(s.memory_mib for s in window) for window in windows)
    return round(middle, 1), round(end, 1)
