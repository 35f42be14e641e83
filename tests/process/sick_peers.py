"""Peers in memory that answer, refuse, hang or drip, as their mood is."""

import asyncio
import enum
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, Self, cast

import aiohttp
import pytest
from yarl import URL

from bridge.reconcile import program
from bridge.reconcile.informers import Mirror
from bridge.reconcile.program import Program, Tempo
from bridge.reconcile.set_aside import SetAside
from bridge.settings.policy_file import PolicyFile, compiled
from bridge.settings.schema import Settings
from bridge.settings.slurm import Slurm
from controllers import __main__ as controllers
from extender import __main__ as extender
from leader import __main__ as leader
from slurmclient import LostReply, Tls, TokenFile, Unavailable
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import Transport
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.kubeconfig.credentials import Credentials
from slurmruntime.leading.lease import Accession, LeaseTimes
from slurmruntime.process import lifetime, liveness
from slurmruntime.process.events import Reporter
from slurmruntime.process.health import Health
from slurmruntime.process.liveness import Liveness
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId
from tests import virtual_time
from tests.virtual_time import VirtualClock

TEN_MINUTES_S = 600.0


REQUEST_TIMEOUT_S = 10.0


NOTED = {"creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1", "uid": "u-1"}


POD = {
    "metadata": {**NOTED, "name": "waits", "namespace": "ns"},
    "spec": {
        "schedulerName": "slurm-bridge-scheduler",
        "schedulingGates": [{"name": "slurm-bridge.dev/placement"}],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    },
    "status": {"phase": "Pending"},
}


class Mood(enum.Enum):
    UP = "up"
    AWAY = "away"
    HANGS = "hangs"


class FakeApiServer:
    """A `ClientSession` to an API server with one pod and leases; only our own deadlines end a call that hangs."""

    def __init__(self) -> None:
        self.mood = Mood.UP
        self.leases: dict[str, dict[str, Any]] = {}
        self.version = 1

    async def request(self, method: str, url: URL, **rest: Any) -> "Response":
        limits: aiohttp.ClientTimeout = rest["timeout"]
        await self._suffer(limits.sock_read)
        await asyncio.sleep(0.01)
        params = rest["params"] or {}
        if "watch" in params:
            return Response(self, 200, {}, idle_s=limits.sock_read or 0.0)
        return Response(self, *self._answer(method, url.path, rest["data"]))

    async def _suffer(self, idle_s: float | None) -> None:
        match self.mood:
            case Mood.AWAY:
                raise aiohttp.ClientConnectionError("connection refused")
            case Mood.HANGS if idle_s:
                await asyncio.sleep(idle_s)
                raise aiohttp.SocketTimeoutError
            case Mood.HANGS:
                await asyncio.Event().wait()
            case Mood.UP:
                pass

    def _answer(self, method: str, path: str, data: bytes | None) -> tuple[int, object]:
        if "/leases" in path:
            return self._lease(method, path, data)
        if method == "GET" and path in ("/api/v1/pods", "/api/v1/nodes"):
            items = [POD] if path.endswith("pods") else []
            return 200, {"metadata": {"resourceVersion": "1"}, "items": items}
        if method == "GET" and "/namespaces/" in path and path.count("/") == 4:
            return 200, {"metadata": {**NOTED, "name": path.rpartition("/")[2]}}
        return 404, {"kind": "Status", "reason": "NotFound"}

    def _lease(self, method: str, path: str, data: bytes | None) -> tuple[int, object]:
        written = json.loads(data or b"{}")
        name = written["metadata"]["name"] if method == "POST" else path.rpartition("/")[2]
        if method != "GET":
            self.version += 1
            named = {**NOTED, "name": name, "resourceVersion": str(self.version)}
            self.leases[name] = {"metadata": named, "spec": written["spec"]}
        found = self.leases.get(name)
        return (200, found) if found else (404, {"kind": "Status", "reason": "NotFound"})


class Response:
    connection = None
    headers: dict[str, str] = {}  # noqa: RUF012  # never written to

    def __init__(
        self, server: FakeApiServer, status: int, body: object, *, idle_s: float = 0.0
    ) -> None:
        self.status = status
        self.content = self
        self._server = server
        self._body = json.dumps(body).encode()
        self._idle_s = idle_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def read(self) -> bytes:
        return self._body

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Bookmarks, as long as the server lives; it does not end the watch by itself."""
        while True:
            await asyncio.sleep(60)
            await self._server._suffer(self._idle_s)
            noted = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}
            yield json.dumps(noted).encode() + b"\n"


class FakeSlurmrestd:
    """A `Transport` to a Slurm without jobs and nodes."""

    def __init__(self) -> None:
        self.mood = Mood.UP

    async def exchange(self, request: Request) -> Reply:
        operation, path = request.operation, request.path
        match self.mood:
            case Mood.AWAY:
                raise Unavailable(operation, "cannot reach slurmrestd")
            case Mood.HANGS:
                await asyncio.sleep(REQUEST_TIMEOUT_S)
                raise LostReply(operation, "no response from slurmrestd")
            case Mood.UP:
                pass
        await asyncio.sleep(0.01)
        version = {"major": "26", "micro": "0", "minor": "5"}
        body: dict[str, object] = {"meta": {"slurm": {"version": version}}, "errors": []}
        if path.endswith("/jobs/state/"):
            body["jobs"] = []
        elif path.endswith("/nodes/"):
            body["nodes"] = []
        elif path.endswith("/diag/"):
            body["statistics"] = {"req_time_start": {"set": True, "number": 1}}
        return Reply(status=200, body=json.dumps(body).encode())


class Bridge:
    """A whole program but for its servers, in virtual time."""

    def __init__(self, clock: VirtualClock, name: str, election: LeaseTimes) -> None:
        self.api, self.slurm = FakeApiServer(), FakeSlurmrestd()
        at = SimpleNamespace(server="http://api", server_name=None, proxy=None)
        user = SimpleNamespace(connection=at, tls=True)
        user.authorization = user.renewed = self._nobody
        metrics = Metrics(name)
        settings = Settings(slurm=Slurm(user="somebody", group="some"))
        alive = Liveness(clock.monotonic, bound_s=program.longest_silence_s(settings))

        def kube() -> KubeClient:
            return KubeClient(
                cast("aiohttp.ClientSession", self.api),
                cast("Credentials", user),
                request_timeout_s=REQUEST_TIMEOUT_S,
                on_call=program._sign_of_life(metrics.kube.call),
            )

        self.program = Program(
            name=name,
            settings=settings,
            kube=kube(),
            lease_kube=kube(),
            slurm=SlurmClient(
                cast("Transport", self.slurm),
                token=TokenFile("nowhere"),
                connections=8,
                on_call=program._sign_of_life(metrics.slurm.call),
            ),
            slurm_tls=Tls(),
            cluster=ClusterId("c"),
            metrics=metrics,
            health=Health(),
            set_aside=SetAside(metrics, clock),
            liveness=alive,
            clock=clock,
            rng=random.Random(1),  # noqa: S311  # jitter
            reporter=Reporter(controller=name, instance="here"),
            tempo=Tempo(lease=election),
        )
        self.mirror = Mirror(self.program.set_aside)
        self.stop = asyncio.Event()
        self.terms = 0

    async def _nobody(self) -> str:
        return ""

    async def body(self, stop: asyncio.Event, accession: Accession) -> None:
        self.terms += 1
        if self.program.name == "controllers":
            await controllers.lead(self.program, self.mirror, stop, accession)
            return
        policy = cast("PolicyFile", SimpleNamespace(current=compiled(self.program.settings)))
        if self.program.name == leader.NAME:
            await leader.lead(self.program, self.mirror, policy, stop, accession)
            return
        await extender.place(self.program, self.mirror, policy, stop, accession)

    async def run(self) -> None:
        with liveness.watching(self.program.liveness):
            sides = leader.SIDES if self.program.name == leader.NAME else ()
            parts = (
                *self.mirror.parts(self.program),
                self.program.leader_part(self.body, sides=sides),
            )
            await lifetime.run_parts(*parts, stop=self.stop)


@pytest.fixture(autouse=True)
def _never_really_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(why: str) -> None:
        raise AssertionError(f"the process was given up: {why}")

    monkeypatch.setattr(lifetime, "end_at_once", fail)


def with_bridge(
    name: str,
    election: LeaseTimes,
    story: Callable[[Bridge, VirtualClock], Coroutine[Any, Any, None]],
) -> Bridge:
    """Run a program, and a story beside it."""

    async def main(clock: VirtualClock) -> Bridge:
        bridge = Bridge(clock, name, election)
        async with asyncio.TaskGroup() as group:
            group.create_task(bridge.run())
            await clock.sleep(60)
            assert 1 == bridge.terms
            await story(bridge, clock)
            bridge.stop.set()
        return bridge

    return virtual_time.run(main)


async def stays_live(bridge: Bridge, clock: VirtualClock, seconds: float) -> None:
    end_s = clock.monotonic() + seconds
    while clock.monotonic() < end_s:
        await clock.sleep(1)
        assert {} == bridge.program.liveness.faults()
