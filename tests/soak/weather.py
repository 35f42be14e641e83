"""What goes wrong meanwhile: one fault after the other, drawn at random, each over after seconds."""

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sandbox.errors import SandboxError
from tests import faults
from tests.fault_bench import PEERS, FaultBench
from tests.faults import Fault
from tests.soak import clocks
from tests.soak.flood import Flood

Kind = Callable[[], Awaitable[str]]

_NETWORK: Mapping[str, Fault] = {
    "lost requests": faults.LOST_REQUEST,
    "lost replies": faults.LOST_REPLY,
    "answers cut off": replace(faults.TRUNCATED, cut_at=120),
    "slow answers": faults.slow(3),
    "requests that arrive late": faults.late(5),
    "500 for what was done": faults.answers(500, "{}", reaches_server=True),
    "502": faults.answers(502, "<html>", content_type="text/html"),
    "half JSON": faults.answers(200, '{"jobs": [{"job_id": 1, "jo', reaches_server=True),
}
_PAUSED = (
    "bridge-scheduler",
    "slurmctld",
    "slurmdbd",
    "slurmrestd",
    "apiserver",
    "etcd",
)
_HANGS_S = (1.0, 15.0)
_ORDERS_AGAIN_S = 0.5
_JUMPS_S = (30.0, 3600.0)
_WRONG_FOR_S = (2.0, 12.0)
_FLOODED_FOR_S = (1.0, 8.0)
_KILLED = ("bridge-scheduler", "slurmrestd", "apiserver", "etcd")
_RESTARTED = ("slurmctld", "slurmctld", "slurmdbd", "slurmrestd", "apiserver")


_NAMES = {
    "network": "requests or replies lost, late, slow, cut off or wrong",
    "cut": "connections cut",
    "frozen": "watches silent",
    "pause": "a process hangs",
    "restart": "one of theirs restarted",
    "kill": "one of theirs killed",
    "kill_ours": "one of ours killed",
    "clock": "a service's clock jumps, by an hour or less",
    "flood": "a tenant floods its namespace with a hundred hopeless pods",
    "hang": "a service of ours stopped, often for longer than its lease",
}
"""Of the kinds, for the report."""


class Weather:
    """Makes trouble for one sandbox."""

    def __init__(
        self,
        bench: FaultBench,
        dice: random.Random,
        *,
        flood: Flood | None = None,
        sets_clocks: bool = False,
    ) -> None:
        """flood: another tenant's; sets_clocks: the services were started with `clocks.adjustable`."""
        self.story: list[str] = []
        """What has happened, in order."""
        self.kinds: list[str] = []
        """Of what kind each of it was."""
        self.is_gentle = False
        """No fault that ends a process of ours, be it by a lost lease: not while their memory is measured."""
        self._bench = bench
        self._sandbox = bench.sandbox
        self._dice = dice
        self._flood = flood
        self._sets_clocks = sets_clocks

    async def one(self) -> None:
        """Let one thing go wrong; returns when it is over."""
        kinds: list[Kind] = [self.network, self.network, self.network, self.frozen, self.cut]
        kinds += [self.pause, self.restart, self.kill]
        kinds += [] if self.is_gentle else [self.kill_ours] * 2
        kind = self._dice.choice(kinds)
        self.kinds.append(_NAMES[kind.__name__])
        try:
            self.story.append(await kind())
        except SandboxError as error:
            self.story.append(f"{kind.__name__} failed: {error}")

    async def changeable(self, stop: asyncio.Event, pause_s: tuple[float, float]) -> None:
        """One thing after the other, with pauses, until told to stop; then calm."""
        while not stop.is_set():
            await self.one()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._dice.uniform(*pause_s))
        await self.calm()

    async def standing_still(self, stop: asyncio.Event, every_s: float) -> None:
        """Hang a service of ours every so many seconds, whatever else goes wrong, until told to stop."""
        began_s = time.monotonic()
        for number in itertools.count(1):
            with contextlib.suppress(TimeoutError):
                pause_s = began_s + number * every_s - time.monotonic()
                await asyncio.wait_for(stop.wait(), max(0.0, pause_s))
            if stop.is_set():
                return
            self.story.append(await self.hang())
            self.kinds.append(_NAMES["hang"])

    async def besides(self, stop: asyncio.Event, pause_s: tuple[float, float]) -> None:
        """Let clocks jump and another tenant flood, whatever else goes wrong, until told to stop."""
        kinds: list[Kind] = [self.clock] if self._sets_clocks else []
        kinds += [self.flood] if self._flood else []
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(self._again_and_again(kind, stop, pause_s))

    async def _again_and_again(
        self, kind: Kind, stop: asyncio.Event, pause_s: tuple[float, float]
    ) -> None:
        while not stop.is_set():
            self.story.append(await kind())
            self.kinds.append(_NAMES[kind.__name__])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._dice.uniform(*pause_s))

    async def calm(self) -> None:
        """Undo all that lasts."""
        self._bench.calm()
        clocks.put_right(self._sandbox)
        for service in self._bench.services:
            for peer in PEERS:
                self._bench.link(service, peer).cut()
        for name, part in (await asyncio.to_thread(self._sandbox.status)).items():
            if part.state == "paused":
                await asyncio.to_thread(self._sandbox.resume, name)
            elif part.state in {"down", "failed"}:
                await asyncio.to_thread(self._sandbox.start, name)

    @property
    def _ours(self) -> Sequence[str]:
        return (*self._bench.services, "webhook")

    @property
    def _spared(self) -> Collection[str]:
        """What is left alone in gentle weather: without them leaders lose their lease, and end."""
        return ("apiserver", "etcd", *self._ours) if self.is_gentle else ()

    def _one_of(self, parts: Sequence[str]) -> str:
        return self._dice.choice([part for part in parts if part not in self._spared])

    # -- kinds ------------------------------------------------------------------------------------

    async def network(self) -> str:
        """Some requests of one service to one peer, reads and writes alike, meet a fault."""
        peers = [peer for peer in PEERS if peer not in self._spared]
        service, peer = self._dice.choice(self._bench.services), self._dice.choice(peers)
        what, times = self._dice.choice(tuple(_NETWORK)), self._dice.randint(1, 8)
        if peer == "slurmctld":  # which does not speak HTTP
            what = self._dice.choice(("lost requests", "lost replies", "slow answers"))
        if peer == "apiserver" and what == "half JSON":
            what = "answers cut off"
        self._bench.link(service, peer).inject(_NETWORK[what], times=times)
        return f"{times} {what} between {service} and {peer}"

    async def frozen(self) -> str:
        """The watches of one service go silent, and break much later."""
        service, seconds = self._dice.choice(self._bench.services), self._dice.uniform(1, 15)
        proxy = self._bench.link(service, "apiserver")
        proxy.freeze("GET", "watch=")
        await asyncio.sleep(seconds)
        proxy.cut()
        return f"{service}'s watches are silent for {seconds:.1f} s"

    async def cut(self) -> str:
        """All connections of one service to one peer break."""
        service, peer = self._dice.choice(self._bench.services), self._dice.choice(PEERS)
        self._bench.link(service, peer).cut()
        return f"{service} loses its connections to {peer}"

    async def pause(self) -> str:
        """A process hangs."""
        part, seconds = self._one_of((*self._ours, *_PAUSED)), self._dice.uniform(0.5, 8)
        await asyncio.to_thread(self._sandbox.pause, part)
        try:
            await asyncio.sleep(seconds)
        finally:
            await asyncio.to_thread(self._sandbox.resume, part)
        return f"{part} hangs for {seconds:.1f} s"

    async def hang(self) -> str:
        """A service of ours stands still, for about as long as its lease lasts or for longer."""
        service, seconds = self._dice.choice(self._ours), self._dice.uniform(*_HANGS_S)
        await self._until_done(self._sandbox.pause, service)
        try:
            await asyncio.sleep(seconds)
        finally:
            await self._until_done(self._sandbox.resume, service)
        return f"{service} stands still for {seconds:.1f} s"

    async def _until_done(self, order: Callable[[str], None], part: str) -> None:
        """Give an order; while a part is restarted the sandbox takes none."""
        while True:
            try:
                await asyncio.to_thread(order, part)
            except SandboxError:
                await asyncio.sleep(_ORDERS_AGAIN_S)
            else:
                return

    async def restart(self) -> str:
        """A process of others is restarted in order."""
        part = self._one_of(_RESTARTED)
        await asyncio.to_thread(self._sandbox.restart, part)
        return f"{part} is restarted"

    async def kill(self) -> str:
        """A process of others is killed."""
        part = self._one_of(_KILLED)
        await asyncio.to_thread(self._sandbox.restart, part, signal="KILL", wait=True)
        return f"{part} is killed"

    async def kill_ours(self) -> str:
        """A process of ours is killed."""
        part = self._dice.choice(self._ours)
        await asyncio.to_thread(self._sandbox.restart, part, signal="KILL", wait=False)
        return f"{part} is killed"

    async def clock(self) -> str:
        """The wall clock of a service of ours jumps, and later jumps back."""
        service = self._dice.choice(self._ours)
        ahead_s = self._dice.choice((-1, 1)) * self._dice.uniform(*_JUMPS_S)
        clocks.put_ahead(self._sandbox, service, ahead_s)
        await asyncio.sleep(self._dice.uniform(*_WRONG_FOR_S))
        clocks.put_right(self._sandbox)
        return f"{service}'s clock is {ahead_s:+.0f} s wrong for a while"

    async def flood(self) -> str:
        """Another tenant's pods come all at once, and go."""
        flood = self._flood
        assert flood is not None
        what = await asyncio.to_thread(flood.come, self._dice)
        await asyncio.sleep(self._dice.uniform(*_FLOODED_FOR_S))
        await asyncio.to_thread(flood.go)
        return f"{what} come and go"
