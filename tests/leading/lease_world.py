"""Contenders for one lease, an API server, and the network between them, all in virtual time.

Each contender is a process with a loop and clocks of its own, and can be frozen. Requests travel on their own: one whose
sender has given up or stands still arrives all the same. Whatever the network does to a message, a `Network` says.
"""

import asyncio
import contextlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from slurmruntime.leading import lease, several
from slurmruntime.leading.lease import LeaseTimes
from slurmruntime.model.leases import LeaseRecord
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import PEER_ERRORS, CallError, PeerError
from tests.virtual_time import VirtualClock, World

T = TypeVar("T")

SETTINGS = LeaseTimes()
HURRIED = LeaseTimes(duration_s=4, renew_deadline_s=3, retry_period_s=0.5)
"""The sandbox's."""


class Lost(CallError):
    """No answer came."""

    transient = True


class Failed(Exception):
    """A body's own error."""


class Conflict(CallError):
    """409."""

    transient = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of one call; seconds, None: it gets lost."""

    request_s: float | None = 0.0
    reply_s: float | None = 0.0


Network = Callable[[str, float], Fate]
"""The fate of a call by that contender at that moment."""


EXTENDER = "extender"
CONTROLLERS = "controllers"


class ApiServer:
    """Leases, guarded by their resourceVersions."""

    def __init__(self) -> None:
        self.records: dict[str, LeaseRecord] = {}
        self.calls = 0

    @property
    def record(self) -> LeaseRecord | None:
        """The lease that most tests have only."""
        return self.records.get(EXTENDER)

    @record.setter
    def record(self, record: LeaseRecord) -> None:
        self.records[EXTENDER] = record

    def get(self, name: str) -> LeaseRecord | None:
        self.calls += 1
        return self.records.get(name)

    def create(self, name: str, record: LeaseRecord) -> None:
        self.calls += 1
        if name in self.records:
            raise Conflict("AlreadyExists")
        self._write(name, record)

    def replace(self, name: str, record: LeaseRecord) -> LeaseRecord:
        self.calls += 1
        before = self.records.get(name)
        if before is None or before.resource_version != record.resource_version:
            raise Conflict("the object has been modified")
        return self._write(name, record)

    def _write(self, name: str, record: LeaseRecord) -> LeaseRecord:
        self.records[name] = replace(record, resource_version=str(self.calls))
        return self.records[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign:
    """A body ran from then to then, as the world's clock says."""

    who: str
    began_s: float
    ended_s: float
    leases: frozenset[str] = frozenset({EXTENDER})

    def overlap(self, other: "Reign") -> tuple[float, float] | None:
        """Return when both did the same work."""
        if not self.leases & other.leases:
            return None
        began_s, ended_s = max(self.began_s, other.began_s), min(self.ended_s, other.ended_s)
        return (began_s, ended_s) if began_s < ended_s else None


@dataclass
class Contender:
    """One replica that wants to lead."""

    name: str
    election: "Election"
    leases: tuple[str, ...] = (EXTENDER,)
    """More than one: its work is that of several programs."""
    wrong_by: timedelta = timedelta(0)
    settings: LeaseTimes = SETTINGS
    body_ends_after_s: float | None = None
    """The body ends by itself; None: when it is told to."""
    body_fails: bool = False
    """When it ends, it is by an error."""
    unwinding_s: float = 0.0
    """How long the body takes to end, told or cancelled."""
    loses_cancels: int = 0
    """So many cancels of its calls come out as an error of the API server."""
    frozen: list[tuple[float, float]] = field(default_factory=list)
    is_leading: bool = False
    died_of: str = ""
    """Why the process was given up."""
    processes: int = 0
    """How often it has started."""
    accessions: list[lease.Accession] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = asyncio.Event()
        self._began_s = 0.0
        self.process = self.election.world.start(self._main())

    def stop_at(self, when_s: float) -> None:
        """Ask it to end, as SIGTERM does."""
        self.process.loop.call_at(when_s, self._stop.set)

    def freeze_at(self, when_s: float, seconds: float) -> None:
        """Stop it in its tracks for so long; for ever is as good as a crash."""
        self.frozen.append((when_s, when_s + seconds))
        self.election.at(when_s, lambda: self.process.freeze(seconds))

    async def _main(self) -> None:
        with contextlib.suppress(Failed, ExceptionGroup):  # the process ends with it
            await self._contend()

    async def _contend(self) -> None:
        """One process after the other: who has lost the lease starts afresh, under another name."""
        while True:
            self.processes += 1
            candidate = lease.Candidate(
                store=_Store(self),
                identity=f"{self.name}-{self.processes}",
                times=self.settings,
                clock=VirtualClock(wrong_by=self.wrong_by),
                rng=random.Random(self.name),  # noqa: S311  # jitter needs no secrecy
                give_up=self._die,
            )
            has_ended = await self._lead(
                candidate, stop=self._stop, metrics=self.election.metrics, on_lead=self._body
            )
            if has_ended:
                return

    async def _lead(self, candidate: lease.Candidate, **options: Any) -> bool:
        if len(self.leases) > 1:
            return await several.lead(candidate, self.leases, **options)
        return await lease.lead(candidate, self.leases[0], **options)

    def _die(self, why: str) -> None:
        """The process ends, whatever still runs in it."""
        self.died_of = why
        self.process.freeze(math.inf)
        if self.is_leading:
            self.is_leading = False
            self._reigned()

    def _reigned(self) -> None:
        now_s = self.election.world.now_s
        self.election.reigns.append(
            Reign(
                who=self.name,
                began_s=self._began_s,
                ended_s=now_s,
                leases=frozenset(self.leases),
            )
        )

    async def _body(self, stop: asyncio.Event, accession: lease.Accession) -> None:
        self.accessions.append(accession)
        self._began_s, self.is_leading = self.election.world.now_s, True
        try:
            async with asyncio.timeout(self.body_ends_after_s):
                await stop.wait()
        except TimeoutError:
            pass
        finally:
            await self._unwind()
            self.is_leading = False
            self._reigned()
        if self.body_fails:
            raise Failed

    async def _unwind(self) -> None:
        """However often it is cancelled meanwhile."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.unwinding_s
        while (left_s := end_s - loop.time()) > 0:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(left_s)


class Election:
    """All of it."""

    def __init__(self, network: Network | None = None) -> None:
        self.world = World()
        self.server = ApiServer()
        self.metrics = Metrics("test")
        self.reigns: list[Reign] = []
        self.network = network or (lambda _who, _at_s: Fate())
        self._outside = self.world.start(asyncio.sleep(0))
        """A process that is never frozen: the network and the API server."""

    def contender(self, name: str, **options: object) -> Contender:
        return Contender(name, self, **options)  # type: ignore[arg-type]  # the dataclass checks names

    def at(self, when_s: float, action: Callable[[], object]) -> None:
        """Do something at that moment, whoever is frozen."""
        self._outside.loop.call_at(when_s, action)

    def run(self, until_s: float) -> None:
        self.world.run(until_s=until_s)

    def call(self, contender: Contender, operation: Callable[[], T]) -> "asyncio.Future[T]":
        """Send a request; the future gets the reply."""
        here, fate = contender.process.loop, self.network(contender.name, self.world.now_s)
        reply: asyncio.Future[T] = here.create_future()

        def answer(result: T | None, error: PeerError | None) -> None:
            if reply.done():
                return
            if error is not None:
                reply.set_exception(error)
            else:
                reply.set_result(result)  # type: ignore[arg-type]  # there is one if no error

        def arrive() -> None:
            result, error = None, None
            try:
                result = operation()
            except PEER_ERRORS as refused:
                error = refused
            if fate.reply_s is not None:
                here.call_later(fate.reply_s, answer, result, error)
            else:
                here.call_later(1, answer, None, Lost("connection reset"))

        if fate.request_s is not None:
            self._outside.loop.call_later(fate.request_s, arrive)
        else:
            here.call_later(1, answer, None, Lost("connection refused"))
        return reply


class _Store:
    """A contender's way to the API server."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._election = contender.election
        self._server = contender.election.server

    async def get(self, name: str) -> LeaseRecord | None:
        return await self._call(lambda: self._server.get(name))

    async def create(self, name: str, record: LeaseRecord) -> None:
        await self._call(lambda: self._server.create(name, record))

    async def replace(self, name: str, record: LeaseRecord) -> LeaseRecord:
        return await self._call(lambda: self._server.replace(name, record))

    async def _call(self, operation: Callable[[], T]) -> T:
        try:
            return await self._election.call(self._contender, operation)
        except asyncio.CancelledError:
            if not self._contender.loses_cancels:
                raise
            self._contender.loses_cancels -= 1
            raise Lost("no answer in time") from None
