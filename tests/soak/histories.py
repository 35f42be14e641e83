"""Random histories on the real pair: some at a time share one sandbox and its weather; afterwards the contracts are compared.

A history is a handful of lives at random moments. What is drawn follows from the seed; what meets what does not, as
real processes run meanwhile: the story of a batch says what happened.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from tests.fault_bench import FaultBench
from tests.soak import lives
from tests.soak.field import Field
from tests.soak.flood import Flood
from tests.soak.lives import Fate, Life
from tests.soak.weather import Weather

_LIVES = (1, 2, 2, 3, 4)
_FATES = (*Fate, Fate.ENDS, Fate.ENDS)
_LONGEST_S = 8.0
"""A history's lives begin within so long."""
SETTLES_WITHIN_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Histories that were lived at the same time."""

    histories: int
    lives: Sequence[Life]
    story: Sequence[str]
    breaches: Sequence[str]

    @override
    def __str__(self) -> str:
        """For whoever has to understand it."""
        return "\n".join(
            (
                *self.breaches,
                "lives:",
                *(f"  {life.name} {life.fate.value}" for life in self.lives),
                "weather:",
                *(f"  {line}" for line in self.story),
            )
        )


async def live(
    bench: FaultBench,
    namespace: str,
    *,
    seed: int,
    histories: int,
    prefix: str = "h",
    flood: Flood | None = None,
    sets_clocks: bool = False,
) -> Batch:
    """Let a batch of histories happen, calm down, and compare both worlds.

    Args:
        bench: where.
        namespace: of its own: what is left of it is compared, too.
        seed: of all that is drawn.
        histories: how many.
        prefix: of the pods' names.
        flood: another tenant's.
        sets_clocks: the services' clocks can be set (`clocks.adjustable`).
    """
    dice = random.Random(seed)  # noqa: S311  # seeded: the same draws come again
    plans = [
        (
            dice.uniform(0, _LONGEST_S),
            lives.draw(dice, f"{prefix}-{seed}-{history}-{number}", _FATES),
        )
        for history in range(histories)
        for number in range(dice.choice(_LIVES))
    ]
    weather = Weather(bench, random.Random(seed), flood=flood, sets_clocks=sets_clocks)  # noqa: S311
    over = asyncio.Event()
    async with Field.on(bench.sandbox, namespace) as field:
        async with asyncio.TaskGroup() as group:
            group.create_task(field.tend(over))
            storm = group.create_task(weather.changeable(over, (0.2, 1.5)))
            besides = group.create_task(weather.besides(over, (0.2, 1.5)))
            creating = [group.create_task(_later(field, at, life)) for at, life in plans]
            for task in creating:
                await task
            await asyncio.sleep(dice.uniform(1, 4))
            over.set()
            await besides
            await storm
            await weather.calm()
        await field.settle(SETTLES_WITHIN_S)
        await field.clear(SETTLES_WITHIN_S)
        await field.audit()
        if flood:
            field.tally.breaches += await asyncio.to_thread(flood.breaches, SETTLES_WITHIN_S)
    return Batch(
        histories=histories,
        lives=[life for _, life in plans],
        story=weather.story,
        breaches=field.tally.breaches,
    )


async def _later(field: Field, after_s: float, life: Life) -> None:
    await asyncio.sleep(after_s)
    await field.create(life)
