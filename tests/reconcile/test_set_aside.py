"""What is set aside: told once, counted, remembered within a bound, and over when it is settled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bridge.domain.lifecycle.decision import Actor
from bridge.reconcile import set_aside as module
from bridge.reconcile.set_aside import MOST, SetAside, odd_pods
from slurmruntime.kube.errors import Unavailable
from slurmruntime.process.events import EventRecorder, Reporter
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.faults import Fault
from slurmruntime.values.oddities import About
from tests import virtual_time
from tests.make import lives as build
from tests.make.samples import value
from tests.virtual_time import VirtualClock

POD = About(kind="Pod", namespace="team-a", name="odd", uid="1")


class World:
    """What one process has set aside, and what it told people: the API server that gets its Events."""

    def __init__(self, clock: VirtualClock) -> None:
        self.metrics = Metrics("test")
        self.aside = SetAside(self.metrics, clock)
        self.said: list[tuple[About, str]] = []
        self.is_away = False
        self.events = EventRecorder(
            kube=self,  # type: ignore[arg-type]  # all that is called
            reporter=Reporter(controller="test", instance="test"),
            clock=clock,
        )

    async def request(self, method: str, path: str, *, body: dict[str, Any]) -> None:
        regarding = body["regarding"]
        about = About(
            api_version=regarding["apiVersion"],
            kind=regarding["kind"],
            namespace=regarding["namespace"],
            name=regarding["name"],
            uid=regarding["uid"],
        )
        self.said.append((about, body["note"]))
        if self.is_away:
            raise Unavailable(method, path, message="no answer")

    def total(self, kind: str, reason: str) -> float:
        return value(self.metrics, "slurm_bridge_set_aside_total", kind=kind, reason=reason)

    def now(self, kind: str) -> float:
        return value(self.metrics, "slurm_bridge_set_aside_now", kind=kind)


@asynccontextmanager
async def reporting(world: World, clock: VirtualClock) -> AsyncIterator[None]:
    """Lead, and have everything sent that is due in the end."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.aside.report(world.events, stop))
        await clock.sleep(1)
        yield
        await clock.sleep(1)
        stop.set()


def test_what_is_said_again_and_again_is_told_once() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        with capture_logs() as logs:
            for _ in range(100):
                world.aside.tell("slurm_job", "4711", "its comment is no JSON")
        assert 1 == world.total("slurm_job", "odd") == world.now("slurm_job") == len(logs)
        assert ("slurm_job", "4711") == (logs[0]["kind"], logs[0]["name"])

        world.aside.tell("slurm_job", "4711", "it has no user")
        assert 2 == world.total("slurm_job", "odd")
        assert 1 == world.now("slurm_job")

        world.aside.settled("slurm_job", "4711")
        world.aside.settled("slurm_job", "4711")
        assert 0 == world.now("slurm_job") == len(world.aside)

    virtual_time.run(main)


def test_each_crash_counts_and_its_traceback_is_logged_now_and_then() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        with capture_logs() as logs:
            for _ in range(60):
                world.aside.crashed("pod", "team-a/odd", ZeroDivisionError("oops"))
                await clock.sleep(60)
        assert 60 == world.total("pod", "crashed")
        assert 6 == len(logs)
        assert all(isinstance(line["exc_info"], ZeroDivisionError) for line in logs)

    virtual_time.run(main)


def test_no_more_than_so_many_are_remembered() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        with capture_logs() as logs:
            for number in range(MOST + 500):
                world.aside.tell("pod", f"team-a/{number}", "x" * 100_000)
        assert MOST == len(world.aside) == world.now("pod")
        assert MOST + 500 == world.total("pod", "odd"), "those beyond are counted all the same"
        assert MOST + 1 == len(logs)
        assert all(len(line.get("reason", "")) <= module.LONGEST_REASON for line in logs)

        world.aside.settled("pod", "team-a/7")
        world.aside.tell("pod", "team-a/new", "odd")
        assert MOST == len(world.aside)

    virtual_time.run(main)


def test_who_leads_later_tells_people_once_of_what_is_still_set_aside() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        world.aside.tell("pod", "team-a/gone", "odd", about=POD)
        world.aside.settled("pod", "team-a/gone")
        world.aside.tell("pod", "team-a/odd", "too long", about=POD)
        world.aside.tell("slurm_job", "7", "nobody's pod")
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(world.aside.report(world.events, stop))
            await clock.sleep(1)
            assert [(POD, "too long")] == world.said
            world.is_away = True
            world.aside.tell("pod", "team-a/odd", "too short", about=POD)
            await clock.sleep(1)
            stop.set()
        assert [(POD, "too long"), (POD, "too short")] == world.said

    virtual_time.run(main)


def test_an_owner_is_told_of_what_was_odd_for_less_than_a_turn_of_the_loop() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        async with reporting(world, clock):
            world.aside.tell("pod", "team-a/odd", "too long", about=POD)
            world.aside.settled("pod", "team-a/odd")
        assert [(POD, "too long")] == world.said
        assert 0 == len(world.aside)

    virtual_time.run(main)


def test_who_leads_no_longer_keeps_no_events_of_what_is_over() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        async with reporting(world, clock):
            pass
        world.aside.tell("pod", "team-a/odd", "too long", about=POD)
        world.aside.settled("pod", "team-a/odd")
        assert not world.aside._unreported

    virtual_time.run(main)


def test_what_came_and_went_while_the_api_server_was_slow_is_told_within_a_bound() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        async with reporting(world, clock):
            for number in range(3 * MOST):
                name = f"odd-{number}"
                world.aside.tell("pod", name, "odd", about=replace(POD, name=name))
                world.aside.settled("pod", name)
        assert MOST == len(world.said)

    virtual_time.run(main)


def test_a_flood_is_told_once_each_in_its_order_and_the_speaker_ends_when_told() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        pods = [replace(POD, name=f"odd-{number}") for number in range(MOST)]
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(world.aside.report(world.events, stop))
            for pod in pods:
                world.aside.tell("pod", pod.name, "odd", about=pod)
                await clock.sleep(0.001)
            await clock.sleep(1)
            stop.set()
        assert [(pod, "odd") for pod in pods] == world.said

    virtual_time.run(main)


@pytest.mark.parametrize("actor", list(Actor))
def test_a_pod_is_told_by_whose_it_is_until_nothing_is_odd_any_more(actor: Actor) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        changed = odd_pods(world.aside, {actor})
        plain = build.gated()
        odd = replace(plain, oddities=(Fault("spec.grace", "too long"),))
        changed(None, plain)
        assert 0 == len(world.aside)
        changed(plain, odd)
        assert (actor is Actor.EXTENDER) == len(world.aside)
        changed(odd, plain)
        assert 0 == len(world.aside)
        changed(plain, odd)
        changed(odd, None)
        assert 0 == len(world.aside)

    virtual_time.run(main)


def test_who_leads_both_sides_is_told_once_of_a_pod_that_passes_from_one_to_the_other() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        changed = odd_pods(world.aside, set(Actor))
        waits = replace(build.gated(), oddities=(Fault("spec.grace", "too long"),))
        runs = replace(build.bound(), oddities=waits.oddities, uid=waits.uid)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(world.aside.report(world.events, stop))
            changed(None, waits)
            await clock.sleep(1)
            changed(waits, runs)
            changed(runs, runs)
            await clock.sleep(1)
            stop.set()
        assert 1 == len(world.said)
        assert 1 == len(world.aside)

    virtual_time.run(main)
