"""Whatever stands still, and wherever: afterwards somebody leads again, within one lease and one start.

The sweeps run in virtual time. What aiohttp makes of a cancel that meets a time-out only aiohttp can show: there the sockets
are real, and the loop's clock is moved.
"""

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typing_extensions import override

from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.kubeconfig.credentials import Credentials
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.leading import lease
from slurmruntime.leading.controller import Controller
from slurmruntime.leading.lease import RENEW_JITTER, Accession, LeaseTimes
from slurmruntime.process import liveness
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import CallError
from tests import virtual_time
from tests.leading.lease_world import HURRIED, Election, Fate
from tests.make.processes import process
from tests.virtual_time import VirtualClock

pytestmark = pytest.mark.slow

DEFAULT = LeaseTimes()

TIMINGS = [pytest.param(HURRIED, id="hurried"), pytest.param(DEFAULT, id="default")]
REQUEST_TIMEOUT_S = 10.0
A_START_S = 2.0


def one_lease_and_one_start_s(settings: LeaseTimes) -> float:
    """Until somebody leads again; that the API server is back and that the lease has run out is seen at the next look."""
    return settings.duration_s + A_START_S + 2 * settings.retry_period_s * RENEW_JITTER


class MovedLoop(asyncio.SelectorEventLoop):
    """Real sockets, and a clock that can be moved: to its timers that looks as if the process had stood still."""

    moved_s = 0.0

    @override
    def time(self) -> float:
        return super().time() + self.moved_s

    def jump(self, seconds: float) -> None:
        self.moved_s += seconds

    async def let_pass(self, seconds: float) -> None:
        """Move the clock in small steps, between which everything that is ready happens."""
        end_s = self.time() + seconds
        while self.time() < end_s:
            self.jump(0.05)
            for _ in range(20):
                await asyncio.sleep(0)


class LeaseServer:
    """An API server that has one lease, and can hang."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.spec: dict[str, Any] | None = None
        self.version = 0

    async def handle(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json() if request.can_read_body else {}
        await self.answers.wait()
        match request.method:
            case "GET":
                pass
            case "PUT" if body["metadata"].get("resourceVersion") != str(self.version):
                return web.json_response({"reason": "Conflict"}, status=409)
            case _:
                self.spec, self.version = body["spec"], self.version + 1
        if self.spec is None:
            return web.json_response({"kind": "Status", "reason": "NotFound"}, status=404)
        metadata = {
            "name": "extender",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": str(self.version),
        }
        return web.json_response({"metadata": metadata, "spec": self.spec})

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        try:
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()


async def client_of(url: str, folder: Path) -> Credentials:
    config = folder / "kubeconfig"
    named = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [named],
        "current-context": "c",
        "users": [{"name": "u", "user": {}}],
    }
    config.write_text(json.dumps(content))
    return await Credentials.load(str(config))


@pytest.mark.parametrize("settings", TIMINGS)
@pytest.mark.parametrize("stall_s", [1.0, 5.1, 11.0, 120.0])
@pytest.mark.parametrize("answers_after_s", [0.0, 0.8, 6.0])
def test_over_real_connections_a_leader_that_stood_still_in_a_renewal_leads_again(
    settings: LeaseTimes, stall_s: float, answers_after_s: float, tmp_path: Path
) -> None:
    terms: list[float] = []
    given_up: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MovedLoop)
        server, stop = LeaseServer(), asyncio.Event()

        async def body(stop: asyncio.Event, _accession: Accession) -> None:
            terms.append(loop.time())
            await stop.wait()

        async with (
            server.serving() as url,
            KubeClient.open(
                await client_of(url, tmp_path),
                request_timeout_s=REQUEST_TIMEOUT_S,
                user_agent="test",
                connections=2,
            ) as client,
            asyncio.TaskGroup() as group,
        ):

            async def processes() -> None:
                """One after the other, as the kubelet starts them."""
                for number in itertools.count():
                    candidate = lease.Candidate(
                        store=KubeLeases(client, "ns"),
                        identity=f"a-{number}",
                        times=settings,
                        clock=VirtualClock(),
                        rng=random.Random(1),  # noqa: S311  # jitter
                        give_up=given_up.append,
                    )
                    has_ended = await lease.lead(
                        candidate, "extender", stop=stop, metrics=Metrics("test"), on_lead=body
                    )
                    if has_ended:
                        return

            group.create_task(processes())
            await loop.let_pass(settings.retry_period_s * 3)
            server.answers.clear()
            await loop.let_pass(settings.retry_period_s * RENEW_JITTER)  # a renewal is under way
            loop.jump(stall_s)
            await loop.let_pass(answers_after_s)
            server.answers.set()
            await loop.let_pass(one_lease_and_one_start_s(settings))
            is_over_limit = stall_s + answers_after_s > settings.renew_deadline_s
            assert (2 if is_over_limit else len(terms)) == len(terms)
            renewed = server.version
            await loop.let_pass(settings.retry_period_s * 3)
            assert server.version > renewed, "whoever leads renews"
            stop.set()

    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        runner.run(main())
    assert [] == given_up


def freezes(settings: LeaseTimes) -> Iterator[tuple[float, float]]:
    """Moments all over two rounds of renewals, and how long the process stands still from then on."""
    round_s = settings.retry_period_s * RENEW_JITTER
    for part in range(24):
        for stands_s in (settings.renew_deadline_s, REQUEST_TIMEOUT_S + 1, 100.0):
            yield 20 + 2 * round_s * part / 24, stands_s


@pytest.mark.parametrize("settings", TIMINGS)
@pytest.mark.parametrize("api_hangs", [False, True])
def test_wherever_a_leader_stands_still_somebody_leads_afterwards(
    settings: LeaseTimes, *, api_hangs: bool
) -> None:
    """Calls take a while, so that each of their awaits is met by one of the moments."""
    call_s = settings.retry_period_s / 5
    for at_s, stands_s in freezes(settings):
        back_at_s = at_s + stands_s + 1

        def network(_who: str, now_s: float, at_s: float = at_s, back: float = back_at_s) -> Fate:
            hangs = api_hangs and at_s - 1 <= now_s < back
            return Fate(request_s=None if hangs else call_s, reply_s=call_s)

        election = Election(network)
        only = election.contender("a", settings=settings)
        only.freeze_at(at_s, stands_s)
        calls_s = 6 * call_s  # three looks at the lease, a request and a reply each
        election.run(until_s=back_at_s + one_lease_and_one_start_s(settings) + calls_s)

        assert only.is_leading, (at_s, stands_s)
        assert "" == only.died_of
        election.world.close()


class Lost(CallError):
    transient = True


def test_a_renewal_that_loses_cancels_does_not_outlive_the_body() -> None:
    """As aiohttp does: a cancel comes out as an error of the peer."""
    election = Election(lambda _who, at_s: Fate(request_s=None if 60 <= at_s < 100 else 0))
    only = election.contender("a", loses_cancels=3)
    election.run(until_s=200)

    assert [True] == [only.is_leading]
    assert 2 == len(only.accessions)
    assert 1 == len(election.reigns)
    election.world.close()


async def deaf(times: int) -> None:
    """A call that takes some cancels for its own time-out."""
    for _ in range(times):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


class TestLoops:
    @pytest.mark.parametrize("cancelled", [False, True], ids=["told", "cancelled"])
    def test_a_loop_ends_however_many_cancels_it_loses(self, *, cancelled: bool) -> None:
        async def main(clock: VirtualClock) -> float:
            stop = asyncio.Event()

            async def forever() -> None:
                await deaf(3)
                await asyncio.Event().wait()

            task = asyncio.get_running_loop().create_task(liveness.run("loop", forever(), stop))
            await clock.sleep(1)
            if cancelled:
                task.cancel()
            else:
                stop.set()
            await asyncio.wait([task])
            return clock.monotonic()

        assert virtual_time.run(main) < 10

    def test_a_loop_that_ends_by_itself_is_missed(self) -> None:
        async def main(clock: VirtualClock) -> None:
            await liveness.run("loop", clock.sleep(5), asyncio.Event())

        with pytest.raises(liveness.LoopEndedEarly, match="'loop' ended without being asked"):
            virtual_time.run(main)

    def test_workers_end_although_their_reconcile_loses_the_cancel(self) -> None:
        """It fails at that very moment, so that the worker goes on to the next key."""

        async def main(clock: VirtualClock) -> None:
            async def reconcile(_key: str) -> None:
                await deaf(1)
                raise Lost("at that very moment")

            controller = Controller("pods", reconcile, process=process(clock, Metrics("test")))
            controller.queue.add("key")
            task = asyncio.get_running_loop().create_task(
                controller.run(asyncio.Event(), workers=2)
            )
            await clock.sleep(1)
            task.cancel()
            await asyncio.wait([task], timeout=60)
            assert task.cancelled()

        virtual_time.run(main)


def test_the_default_timings_leave_a_body_time_to_end_before_others_start() -> None:
    assert DEFAULT.duration_s - DEFAULT.renew_deadline_s >= lease._UNWINDING_S
