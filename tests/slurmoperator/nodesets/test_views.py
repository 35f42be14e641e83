"""The views of many Slurms: one that cannot even be opened, and one too many, cost only their own NodeSets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from slurmoperator.nodesets.plan.look import Interest
from slurmoperator.nodesets.views import MOST_SLURMS, WorkerViews
from slurmruntime.kube.errors import Unavailable
from tests.virtual_time import VirtualClock, run

NOTHING = Interest(nodes=frozenset(), jobs=False)


class Heard:
    """What was set aside."""

    def __init__(self) -> None:
        self.crashes: list[str] = []

    def tell(self, *_: Any, **__: Any) -> None:
        raise AssertionError

    def crashed(self, kind: str, name: str, error: Exception, **about: Any) -> None:
        del kind, error, about
        self.crashes.append(name)

    def settled(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("error", [Unavailable("GET", "/", message="away"), RuntimeError("odd")])
def test_a_slurm_that_cannot_be_opened_is_told_and_tried_again(error: Exception) -> None:
    async def main(clock: VirtualClock) -> None:
        is_odd, woken, heard = True, list[str](), Heard()

        @asynccontextmanager
        async def opens(controller: str) -> AsyncIterator[Any]:
            if is_odd and controller == "slurm/odd":
                raise error
            yield object()

        views = WorkerViews(opens, clock=clock, wake=woken.append, set_aside=heard)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(views.run(stop))
            for name in ("odd", "good"):
                views.follow(f"slurm/{name}", name, NOTHING)
            await clock.sleep(1)
            assert views.of("slurm/good") is not None
            assert views.of("slurm/odd") is None
            said = views.facts("slurm/odd", ()).trouble
            assert said is not None
            assert str(error) in said
            assert "odd" in woken
            assert bool(heard.crashes) is isinstance(error, RuntimeError)

            is_odd = False
            await clock.sleep(60)
            assert views.of("slurm/odd") is not None
            stop.set()

    run(main)


def test_a_slurm_beyond_the_most_is_told_and_read_when_another_one_goes() -> None:
    async def main(clock: VirtualClock) -> None:
        @asynccontextmanager
        async def opens(_controller: str) -> AsyncIterator[Any]:
            yield object()

        views = WorkerViews(opens, clock=clock, wake=lambda _: None, set_aside=Heard())
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(views.run(stop))
            for number in range(MOST_SLURMS + 1):
                views.follow(f"slurm/{number}", str(number), NOTHING)
            await clock.sleep(1)
            last = f"slurm/{MOST_SLURMS}"
            assert views.of("slurm/0") is not None
            assert f"more than {MOST_SLURMS} Slurm clusters" in (
                views.facts(last, ()).trouble or ""
            )

            views.forget("0")
            await clock.sleep(10)
            assert views.of(last) is not None
            stop.set()

    run(main)
