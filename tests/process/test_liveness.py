"""`/livez`: fails when a loop of ours does not turn, and never because a peer is away or hangs. In virtual time."""

import asyncio

import pytest

from slurmclient.transport.exchange import Reply
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.leading import lease
from slurmruntime.leading.lease import RENEW_JITTER, LeaseTimes
from slurmruntime.process import health, lifetime, liveness
from slurmruntime.process.health import Health
from slurmruntime.process.liveness import Liveness
from slurmruntime.process.metrics import Metrics
from tests import virtual_time
from tests.leading.lease_world import HURRIED
from tests.make.peers import serving, talk
from tests.process.sick_peers import (
    REQUEST_TIMEOUT_S,
    TEN_MINUTES_S,
    Bridge,
    Mood,
    stays_live,
    with_bridge,
)
from tests.virtual_time import VirtualClock

pytestmark = pytest.mark.slow

PROGRAMS = pytest.mark.parametrize("name", ["extender", "controllers", "leader"])


ELECTIONS = pytest.mark.parametrize(
    "election",
    [pytest.param(HURRIED, id="hurried"), pytest.param(LeaseTimes(), id="default")],
)


@PROGRAMS
@ELECTIONS
@pytest.mark.parametrize("mood", [Mood.AWAY, Mood.HANGS])
class TestPeers:
    def test_slurm_is_no_reason_to_end_a_process(
        self, name: str, election: LeaseTimes, mood: Mood
    ) -> None:
        async def story(bridge: Bridge, clock: VirtualClock) -> None:
            bridge.slurm.mood = mood
            await stays_live(bridge, clock, TEN_MINUTES_S)
            bridge.slurm.mood = Mood.UP
            await stays_live(bridge, clock, 60)

        assert 1 == with_bridge(name, election, story).terms

    def test_the_api_server_is_no_reason_to_end_a_process(
        self, name: str, election: LeaseTimes, mood: Mood
    ) -> None:
        """While it is away: the leader stops leading and waits. It starts afresh, by itself, when it could lead again."""

        async def story(bridge: Bridge, clock: VirtualClock) -> None:
            bridge.api.mood = mood
            await stays_live(bridge, clock, TEN_MINUTES_S)

        assert 1 == with_bridge(name, election, story).terms


@PROGRAMS
def test_nothing_is_overdue_while_there_is_nothing_to_do(name: str) -> None:
    with_bridge(
        name, LeaseTimes(), lambda bridge, clock: stays_live(bridge, clock, 2 * TEN_MINUTES_S)
    )


@PROGRAMS
def test_a_call_without_a_deadline_is_found_out(name: str) -> None:
    """A reading of Slurm that never comes back: nothing else of the process notices."""

    async def story(bridge: Bridge, clock: VirtualClock) -> None:
        async def never(*_: object, **__: object) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

        bridge.slurm.exchange = never  # type: ignore[method-assign]  # that is the fault
        await clock.sleep(TEN_MINUTES_S)
        assert "placeholders" in bridge.program.liveness.faults()

    with_bridge(name, LeaseTimes(), story)


@PROGRAMS
@ELECTIONS
def test_a_program_that_stood_still_in_a_renewal_starts_afresh(
    name: str, election: LeaseTimes
) -> None:
    """All of its loops end, within the time of one lease; a new process follows."""

    async def main(clock: VirtualClock) -> None:
        bridge = Bridge(clock, name, election)
        running = asyncio.get_running_loop().create_task(bridge.run())
        await clock.sleep(60)
        bridge.api.mood = bridge.slurm.mood = Mood.HANGS
        await clock.sleep(election.retry_period_s * RENEW_JITTER)
        clock.jump(REQUEST_TIMEOUT_S + 1)
        await clock.sleep(0.8)
        bridge.api.mood = Mood.UP
        await asyncio.wait([running], timeout=election.duration_s)
        assert running.done()
        with pytest.raises(ExceptionGroup) as caught:
            await running
        assert caught.group_contains(lifetime.StartAfresh)

    virtual_time.run(main)


class TestLoop:
    def test_it_may_pause_wait_for_work_and_wait_for_peers(self) -> None:
        async def main(clock: VirtualClock) -> None:
            alive = Liveness(clock.monotonic, bound_s=180)
            with liveness.watching(alive), liveness.loop("loop"):
                liveness.turned(3600)
                await clock.sleep(3600 + alive.bound_s)
                assert {} == alive.faults()
                liveness.turned(rests_s=None)
                await clock.sleep(1e6)
                assert {} == alive.faults()
                liveness.turned()
                await clock.sleep(alive.bound_s + 1)
                assert {"loop": "no sign of life for 181 s"} == alive.faults()
                liveness.turned()
                assert {} == alive.faults()
                await clock.sleep(alive.bound_s + 1)
            assert {} == alive.faults(), "it has ended"

        virtual_time.run(main)

    def test_what_a_loop_starts_is_part_of_it(self) -> None:
        async def main(clock: VirtualClock) -> None:
            alive = Liveness(clock.monotonic, bound_s=180)

            async def ask() -> None:
                await clock.sleep(alive.bound_s - 1)
                liveness.turned()

            with liveness.watching(alive), liveness.loop("loop"):
                for _ in range(3):
                    async with asyncio.TaskGroup() as group:
                        group.create_task(ask())
                assert {} == alive.faults()

        virtual_time.run(main)


def test_a_lease_that_is_held_without_a_term_is_found_out() -> None:
    """It cannot happen any more, as far as we know: so it is looked for."""

    async def main(clock: VirtualClock) -> None:
        bridge = Bridge(clock, "extender", LeaseTimes())
        candidate = lease.Candidate(
            store=KubeLeases(bridge.program.lease_kube, "ns"),
            identity="a",
            times=LeaseTimes(),
            clock=clock,
            rng=bridge.program.rng,
            give_up=lifetime.end_at_once,
        )
        contender = lease._Contender(candidate, "extender")
        await clock.sleep(1000)
        for _ in range(10):
            assert contender.fault() is None
            assert await contender._attempt()
            await clock.sleep(1.5)
        await clock.sleep(1.5)
        assert "held without a leader for 17 s" == contender.fault()
        await clock.sleep(15)
        assert contender.fault() is None, "by now it may be another's"

    virtual_time.run(main)


async def test_livez_says_what_has_stalled() -> None:
    stalled: dict[str, str] = {}
    app = health.app(Health(), Metrics("test"), lambda: stalled)
    async with serving(app) as address:
        good = await talk(address, lambda peer: peer.ask("GET", "/livez"))
        stalled["placeholders"] = "no sign of life for 200 s"
        bad = await talk(address, lambda peer: peer.ask("GET", "/livez"))

    assert (200, b"ok\n") == (good.status, good.body)
    assert (503, b"[-] placeholders: no sign of life for 200 s\n") == (bad.status, bad.body)
