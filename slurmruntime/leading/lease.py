"""Leader election among replicas by a Lease in the API server, as in client-go.

**This is not a fence.** Clocks are never compared; each side only measures intervals on its own
clock. The leader counts from before it sent the renewal and stops after `LeaseTimes.renew_deadline_s`. Others
count from when they *saw* the renewal and take over after `LeaseTimes.duration_s`, which is longer. Two
bodies therefore run at the same time only if one cannot stop: its process was frozen, or its body
continues after being cancelled. Writes in flight at that moment still land. Everything a leader
does must therefore be safe when done twice (identity, preconditions), and orphans are searched for.
"""

import asyncio
import enum
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import structlog

from slurmruntime.model.leases import LeaseRecord
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import PEER_ERRORS, PeerError

_log = structlog.get_logger(__name__)

RENEW_JITTER = 1.2
"""A leader waits up to this many retry periods between renewals."""

_LONGEST_S = 60
"""How long a lease that is not renewed is left to its holder, whatever it says: one write with a stolen token would
otherwise keep all others from leading for 68 years. No contender of ours writes more than `LeaseTimes.duration_s`."""

_RELEASED_FOR_S = 1
"""`leaseDurationSeconds` of a released lease; the API requires a positive number."""

_UNWINDING_S = 5.0
"""How long a cancelled body may take to end.

Others wait at least `LeaseTimes.duration_s - renew_deadline_s`, 5 s.
"""

_VACANT_S = 15.0
"""How long the lease may be held while no body runs: one iteration of the loop, or a release."""


class LeaseStore(Protocol):
    """Leases in the API server.

    Every call may raise `PeerError`; a write that raised may nevertheless have happened.
    """

    async def get(self, name: str) -> LeaseRecord | None:
        """Return a lease, read from the API server and not from a cache; None if it is absent."""

    async def create(self, name: str, record: LeaseRecord) -> None:
        """Create a lease; raise if it exists already."""

    async def replace(self, name: str, record: LeaseRecord) -> LeaseRecord:
        """Replace a lease and return it as written; raise if its resourceVersion has changed."""


class Accession(enum.Enum):
    """How a leader acquired the lease: what its predecessor may have left in flight."""

    ORDERLY = "orderly"
    """There was no leader, or the last one released the lease after its work had ended normally."""
    SEIZED = "seized"
    """The last leader stopped renewing: it may have died, hung or been interrupted in the middle of
    a write."""


Body = Callable[[asyncio.Event, Accession], Awaitable[None]]
"""The work of a leader; runs until the event is set."""

GiveUp = Callable[[str], object]
"""Ends the process immediately, whatever still runs in it; takes the reason."""


class Claim(enum.Enum):
    """What to do about a lease."""

    CREATE = "create"
    RENEW = "renew"
    TAKE = "take"
    FOLLOW = "follow"
    """Another replica holds it: leave it."""


def claim(record: LeaseRecord | None, identity: str, unchanged_s: float) -> Claim:
    """Decide what to do about a lease that has been unchanged for a time, by our own clock."""
    if record is None:
        return Claim.CREATE
    if record.holder == identity:
        return Claim.RENEW
    if not record.holder or unchanged_s >= min(record.duration_s, _LONGEST_S):
        return Claim.TAKE
    return Claim.FOLLOW


def held_by(
    identity: str, before: LeaseRecord | None, now: datetime, *, duration_s: int
) -> LeaseRecord:
    """Return the record to write to hold the lease from now on."""
    if before is None:
        return LeaseRecord(holder=identity, acquired_at=now, renewed_at=now, duration_s=duration_s)
    ours = before.holder == identity
    return replace(
        before,
        holder=identity,
        acquired_at=before.acquired_at if ours else now,
        renewed_at=now,
        duration_s=duration_s,
        transitions=before.transitions if ours else before.transitions + 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """The intervals of an election in seconds; those of client-go, the same for all contenders.

    `RENEW_JITTER * retry_period_s < renew_deadline_s < duration_s`, so that a leader stops before others start.
    """

    duration_s: int = 15
    """How long others wait after the last renewal before they take over."""
    renew_deadline_s: float = 10.0
    """How long a leader leads without a renewal."""
    retry_period_s: float = 2.0
    """Minimum pause between attempts; at most `RENEW_JITTER` times as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """This process in the elections it takes part in."""

    store: LeaseStore
    identity: str
    """Unique to this process, different even from our successor's in the same pod."""
    times: LeaseTimes
    clock: Clock
    rng: random.Random
    """Spreads the attempts of several contenders."""
    give_up: GiveUp
    """Called if a cancelled body does not end."""


async def lead(
    candidate: Candidate, name: str, *, stop: asyncio.Event, metrics: Metrics | None, on_lead: Body
) -> bool:
    """Wait for the lease, then run `on_lead` while we hold it; lead once.

    Return True at `stop`, or after `on_lead` has ended by itself. At `stop` the lease is released once
    the body has ended, so that the next leader need not wait. If the lease is lost, the body is
    cancelled repeatedly until it ends. If it does not end within seconds, the process is ended: a new
    one takes its place, whereas this one would hold the lease and do nothing. If a body was
    interrupted, by that or by its own error, the lease is left to expire: a write may still be in
    flight, and the next leader must know (`Accession.SEIZED`).

    Return False after the lease was lost, as soon as the API server answers again: what the caller
    starts next needs it. The lease is not touched again, so a follower takes over at the earliest.

    Args:
        metrics: Records whether we lead; None: the caller does (`slurmruntime.leading.several`).
    """
    contender = _Contender(candidate, name)
    cut_off = False
    with liveness.checked(f"lease {name}", contender.fault):
        try:
            if not await contender.campaign(stop):
                return True
            _log.info("lease.acquired", lease=name, identity=candidate.identity)
            cut_off = True
            with recorded_in(metrics, name) if metrics else nullcontext():
                cut_off = not await contender.reign(on_lead, stop)
            if cut_off:
                _log.warning("lease.lost", lease=name, identity=candidate.identity)
                await contender.see_again(stop)
            return stop.is_set() or not cut_off
        finally:
            if not cut_off:
                await contender.release()


class _Contender:
    """One replica's part in the election of one lease."""

    def __init__(self, candidate: Candidate, name: str) -> None:
        self._candidate = candidate
        self._name = name
        self._store = candidate.store
        self._identity = candidate.identity
        self._times = candidate.times
        self._clock = candidate.clock
        # A call that hangs leaves time for another.
        self._attempt_s = self._times.renew_deadline_s / 2
        self._held: LeaseRecord | None = None
        """The lease as our last write left it; None if that is not known."""
        self._seen: LeaseRecord | None = None
        self._seen_at = self._clock.monotonic()
        self._leads_until = self._seen_at
        self._may_hold = False
        self._holds_until = -math.inf
        """Others leave the lease to us at least until then."""
        self._vacant_since: float | None = self._seen_at
        """Since when we may have held the lease while no body runs; None while one does."""
        self._accession = Accession.SEIZED
        self._trouble = ""

    async def campaign(self, stop: asyncio.Event) -> bool:
        """Retry until we hold the lease; return False if stopped before."""
        with liveness.loop(f"lease {self._name}: campaign"):
            while not stop.is_set():
                if await self._attempt():
                    return True
                liveness.turned(retry_s := self._retry_s())
                await pause(retry_s, stop)
        return False

    async def see_again(self, stop: asyncio.Event) -> None:
        """Retry until the lease can be read, or stopped."""
        with liveness.loop(f"lease {self._name}: after its loss"):
            while not stop.is_set():
                with suppress(*PEER_ERRORS, TimeoutError):
                    async with asyncio.timeout(self._attempt_s):
                        await self._store.get(self._name)
                        return
                liveness.turned(retry_s := self._retry_s())
                await pause(retry_s, stop)

    async def reign(self, body: Body, stop: asyncio.Event) -> bool:
        """Run the body while the lease is renewed in time; return False if it was cancelled."""
        limit = asyncio.timeout(self._leads_until - self._clock.monotonic())
        doom: asyncio.TimerHandle | None = None
        try:
            async with asyncio.TaskGroup() as group:
                reigning = group.create_task(self._rule(body, stop))
                renewing = group.create_task(self._renew(limit, reigning))
                try:
                    # Only this wait is in the time-out, so no other code can swallow its cancel.
                    with suppress(TimeoutError):
                        async with limit:
                            await asyncio.wait([reigning])
                finally:
                    doom = asyncio.get_running_loop().call_later(_UNWINDING_S, self._give_up)
                    await liveness.ended(reigning)
                    await liveness.ended(renewing)
        finally:
            if doom is not None:
                doom.cancel()
        return not limit.expired()

    def fault(self) -> str | None:
        """Return a fault for liveness if we have held the lease without a body for too long."""
        now = self._clock.monotonic()
        if self._vacant_since is None or now >= self._holds_until:
            return None
        vacant_s = now - self._vacant_since
        return f"held without a leader for {vacant_s:.0f} s" if vacant_s > _VACANT_S else None

    async def release(self) -> None:
        """Let the next leader start at once, when no body runs; do nothing if another replica holds the lease."""
        if not self._may_hold:
            return
        try:
            async with asyncio.timeout(self._attempt_s):
                record = await self._store.get(self._name)
                if record is not None and record.holder == self._identity:
                    await self._store.replace(
                        self._name, replace(record, holder="", duration_s=_RELEASED_FOR_S)
                    )
                    _log.info("lease.released", lease=self._name)
        except (*PEER_ERRORS, TimeoutError) as error:
            _log.warning("lease.not_released", lease=self._name, error=_words(error))

    async def _rule(self, body: Body, stop: asyncio.Event) -> None:
        self._vacant_since = None
        try:
            await body(stop, self._accession)
        finally:
            self._vacant_since = self._clock.monotonic()

    async def _renew(self, limit: asyncio.Timeout, reigning: asyncio.Task[None]) -> None:
        """Extend the limit with every renewal; expire it once another replica holds the lease."""
        loop = asyncio.get_running_loop()
        with liveness.loop(f"lease {self._name}: renewal"):
            while not reigning.done():
                liveness.turned(retry_s := self._retry_s())
                await self._clock.sleep(retry_s)
                held = await self._attempt()
                if limit.expired() or reigning.done():
                    continue  # no other leader should start until a cancelled body has ended
                if held:
                    limit.reschedule(loop.time() + self._leads_until - self._clock.monotonic())
                elif self._seen is not None and self._seen.holder not in ("", self._identity):
                    limit.reschedule(loop.time())

    def _give_up(self) -> None:
        self._candidate.give_up(
            f"lease {self._name}: its work was cancelled and did not end within {_UNWINDING_S:g} s;"
            " a new process has to start"
        )

    async def _attempt(self) -> bool:
        """Read the lease and write it if we may; return whether we hold it, counted from before the request."""
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._attempt_s):
                held = await self._read_and_write()
        except (*PEER_ERRORS, TimeoutError) as error:
            if _words(error) != self._trouble:
                _log.warning("lease.attempt_failed", lease=self._name, error=_words(error))
            self._trouble = _words(error)
            return False
        self._trouble = ""
        if held:
            if began >= self._holds_until and self._vacant_since is not None:
                self._vacant_since = began
            self._holds_until = began + self._times.duration_s
            self._leads_until = began + self._times.renew_deadline_s
        return held

    async def _read_and_write(self) -> bool:
        held, self._held = self._held, None
        if held is not None:
            with suppress(*PEER_ERRORS):  # another replica has it, or the last reply was lost: read
                self._held = self._seen = await self._write(held)
                return True
        record = await self._store.get(self._name)
        if record != self._seen:
            self._seen, self._seen_at = record, self._clock.monotonic()
        verdict = claim(record, self._identity, self._clock.monotonic() - self._seen_at)
        if verdict is Claim.FOLLOW:
            return False
        self._may_hold = True
        if verdict is not Claim.RENEW:
            is_orderly = record is None or not record.holder
            self._accession = Accession.ORDERLY if is_orderly else Accession.SEIZED
        self._held = await self._write(record)
        return True

    async def _write(self, before: LeaseRecord | None) -> LeaseRecord | None:
        """Write the lease as ours; return it as written, or None if that takes a read."""
        ours = held_by(
            self._identity,
            before,
            self._clock.now(),
            duration_s=self._times.duration_s,
        )
        if before is None:
            await self._store.create(self._name, ours)
            return None
        return await self._store.replace(self._name, ours)

    def _retry_s(self) -> float:
        return self._times.retry_period_s * self._candidate.rng.uniform(1, RENEW_JITTER)


@contextmanager
def recorded_in(metrics: Metrics, *names: str) -> Iterator[None]:
    """Record in the metrics that we lead while the block runs."""
    for name in names:
        metrics.work.leading(name, leads=True)
    try:
        yield
    finally:
        for name in names:
            metrics.work.leading(name, leads=False)


def _words(error: PeerError | TimeoutError) -> str:
    return str(error) or "no response in time"
