"""Set aside what cannot be handled, so that it costs only itself.

Report it, count it, let its owner retry it.

There are two reasons. *odd*: the object has content that we cannot accept, such as an unreadable job or a
grace period of ten thousand years. *crashed*: our code raised an exception over
it, which is a bug of ours; the log has the traceback, and the tests fail on it. Either way the log
names the object, an Event informs its owner if there is an object to attach one to, metrics count
it, and everything else works.

The caller that sets an object aside retries it: a reflector with the object's next version and the
next list, a cache with the next version and every minute, a worker after a back-off, the reading of
Slurm with every list. `settled` ends it.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.decision import Actor
from bridge.domain.model.pods import Pod
from slurmruntime.kube.cache import Callback
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.process.events import EventRecorder, EventType
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import faults
from slurmruntime.values.oddities import About, Kind

_log = structlog.get_logger(__name__)

MOST = 1000
"""Objects remembered at once. Those beyond are counted at every call but not reported: without an
entry, news cannot be distinguished from a repetition. The namespaces share the room: for an object of one with
less, one is forgotten of the namespace with the most."""

LONGEST_REASON = 1024
"""Bytes of a reason; an Event accepts no more."""

_LOGGED_AGAIN_S = 600.0
"""A recurring crash is logged with its traceback at most once in this time."""


@dataclass(slots=True)
class _Entry:
    reason: str
    logged_at: float


class SetAside:
    """The objects one process has set aside."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._entries: dict[tuple[Kind, str], _Entry] = {}
        self._counts: Counter[Kind] = Counter()
        self._shares: Counter[str] = Counter()
        """Entries by namespace."""
        self._unreported: OrderedDict[tuple[Kind, str], tuple[About, str]] = OrderedDict()
        """Events still to be sent: at most `MOST` of what is over, beside those of the entries."""
        self._is_reporting = False
        self._is_full = False
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._entries)

    def tell(self, kind: Kind, name: str, reason: str, *, about: About | None = None) -> None:
        """Set an odd object aside; may be called any number of times, and reports each reason once."""
        reason = faults.shortened(reason, LONGEST_REASON)
        if self._has_room(kind, name):
            if not self._remember(kind, name, reason, about):
                return
            _log.warning("set_aside.odd", kind=kind, name=name, reason=reason)
        self._metrics.work.set_aside(kind, "odd")

    def crashed(
        self, kind: Kind, name: str, error: Exception, *, about: About | None = None
    ) -> None:
        """Set aside an object that our code failed on; every call is counted, as a bug of ours."""
        self._metrics.work.set_aside(kind, "crashed")
        reason = faults.shortened(f"{type(error).__name__}: {error}", LONGEST_REASON)
        if self._has_room(kind, name) and self._remember(kind, name, reason, about):
            _log.error("set_aside.crashed", kind=kind, name=name, reason=reason, exc_info=error)

    def settled(self, kind: Kind, name: str) -> None:
        """Note that the object is handled again, or gone; an Event that is due is sent all the same."""
        if (kind, name) in self._entries:
            self._is_full = False
            self._forget(kind, name)
            _log.info("set_aside.settled", kind=kind, name=name)

    async def report(self, events: EventRecorder, stop: asyncio.Event) -> None:
        """Send Events for what was and will be set aside, until `stop` is set; for the leader only."""
        await liveness.run("set aside", self._report(events), stop)

    async def _report(self, events: EventRecorder) -> None:
        # What was settled before this process led is not its to report.
        for key in self._unreported.keys() - self._entries.keys():
            del self._unreported[key]
        self._is_reporting = True
        try:
            await self._report_forever(events)
        finally:
            self._is_reporting = False

    async def _report_forever(self, events: EventRecorder) -> None:
        while True:
            while self._unreported:
                _, (about, reason) = self._unreported.popitem(last=False)
                await events.record(
                    about, EventType.WARNING, action="SetAside", reason="OddObject", note=reason
                )
            self._news.clear()
            liveness.turned(rests_s=None)
            await self._news.wait()
            liveness.turned()

    def _remember(self, kind: Kind, name: str, reason: str, about: About | None) -> bool:
        """Remember it; return True if it is news, or due for another log line."""
        now = self._clock.monotonic()
        before = self._entries.get((kind, name))
        if before is not None and before.reason == reason:
            is_due = now - before.logged_at >= _LOGGED_AGAIN_S
            before.logged_at = now if is_due else before.logged_at
            return is_due
        if before is None:
            self._count(kind, name, +1)
        self._entries[kind, name] = _Entry(reason, now)
        if about is not None:
            self._unreported[kind, name] = (about, reason)
            self._news.set()
        return True

    def _has_room(self, kind: Kind, name: str) -> bool:
        """Check whether the object can be remembered, and make room for it if it may; log once when there is no more."""
        if (kind, name) in self._entries or len(self._entries) < MOST:
            return True
        if not self._is_full:
            self._is_full = True
            _log.error("set_aside.full", most=MOST)
        largest = max(self._shares, key=self._shares.__getitem__)
        if self._shares[_share(kind, name)] + 1 >= self._shares[largest]:
            return False
        self._forget(*next(key for key in self._entries if _share(*key) == largest))
        return True

    def _forget(self, kind: Kind, name: str) -> None:
        del self._entries[kind, name]
        # An object can be odd and gone between two turns of the loop; its owner still wants to know.
        if not self._is_reporting or len(self._unreported) > MOST:
            self._unreported.pop((kind, name), None)
        self._count(kind, name, -1)

    def _count(self, kind: Kind, name: str, change: int) -> None:
        self._counts[kind] += change
        self._shares[_share(kind, name)] += change
        self._metrics.work.set_aside_now(kind, self._counts[kind])


def _share(kind: Kind, name: str) -> str:
    """Return the namespace of an object; of one without, its kind."""
    namespace, slash, _ = name.partition("/")
    return namespace if slash else kind


def odd_pods(set_aside: SetAside, actors: Collection[Actor]) -> Callback[Pod]:
    """Return a subscriber that informs pod owners of fields with less effect than stated.

    A process has one, for all the sides it leads: two would settle each other's entries.
    """

    def changed(old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.oddities and lifecycle.actor(new) in actors:
            set_aside.tell("pod", new.full_name, faults.one_line(new.oddities), about=new.about)
        elif old is not None and old.oddities:
            set_aside.settled("pod", old.full_name)

    return changed
