"""Objects in memory, kept up to date in the background, with indexes and handlers.

async with slurm.jobs.cache(indexes={"user": lambda job: job.user_name}) as jobs:
    await jobs.synced(timeout_s=60)
    mine = jobs.by("user", "alice")          # from memory
    jobs.on(print)                           # every event, in order; any number of handlers
    await jobs.fresh()                       # wait for a poll that begins after this call
    await jobs.wait_for("4711", lambda job: job is None or has_ended(job.job_state), timeout_s=60)

A change made through the same client is in the cache before the call returns.
"""

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import Generic

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import SlurmError
from slurmclient.watching.backlog import Backlog, Handler
from slurmclient.watching.events import Added, Deleted, Event, Modified, Restarted, V
from slurmclient.watching.picture import Clock, Picture
from slurmclient.watching.polling import pause_s


class Cache(Generic[V]):
    """Objects in memory; they are immutable, so nothing is copied."""

    def __init__(
        self,
        picture: Picture[V],
        *,
        interval_s: float,
        indexes: Mapping[str, Callable[[V], Hashable]],
        clock: Clock,
    ) -> None:
        """Start empty; `running` keeps it up to date. For the arguments see `WatchableCollection.cache`."""
        self._picture = picture
        self._interval_s = interval_s
        self._clock = clock
        self._indexes: dict[str, dict[Hashable, dict[int, V]]] = {name: {} for name in indexes}
        self._keys = indexes
        self._backlogs: list[Backlog[V]] = []
        self._group: asyncio.TaskGroup | None = None
        self._changed = asyncio.Condition()
        self._wake = asyncio.Event()
        self._polled_at: float | None = None
        self.error: SlurmError | None = None
        """Why the last poll failed; None if it succeeded."""

    def get(self, key: str | int) -> V | None:
        """Return the object with this name, or the job with this id; None if there is none."""
        return self._picture.objects.get(str(key))

    def values(self) -> list[V]:
        """Return all objects."""
        return list(self._picture.objects.values())

    def __len__(self) -> int:
        return len(self._picture.objects)

    def by(self, index: str, value: Hashable) -> list[V]:
        """Return the objects for which an index has this value; raise KeyError if there is no such index."""
        return list(self._indexes[index].get(value, {}).values())

    @property
    def odd(self) -> Mapping[str, str]:
        """Why objects cannot be decoded, wholly or in part, by key.

        An object that cannot be decoded at all keeps its last version, if there was one. The key is
        "" if not even the object's key could be decoded.
        """
        return self._picture.odd

    @property
    def age_s(self) -> float | None:
        """The seconds since the last successful poll began; None if there was none."""
        return None if self._polled_at is None else self._clock() - self._polled_at

    def on(self, handler: Handler[V]) -> None:
        """Call a handler with `Added` for every object, and from then on with every event in order.

        A slow handler delays no other. One that falls 10 000 events behind receives `Restarted` and
        all objects once more. A handler's exception ends the cache and is raised by its block.

        Raises:
            RuntimeError: If the cache is not open.
        """
        if self._group is None:
            raise RuntimeError("the cache is not open: use it as `async with … as cache`")
        backlog = Backlog[V]()
        self._backlogs.append(backlog)
        self._group.create_task(self._serve(backlog, handler))

    async def synced(self, *, timeout_s: float | None = None) -> None:
        """Wait for the first successful poll; raise TimeoutError if there is none in time: `error` says why."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self._polled_at is not None)

    async def fresh(self, *, max_age_s: float = 0.0, timeout_s: float | None = None) -> None:
        """Wait for a successful poll that begins after this call, or began at most `max_age_s` before it.

        Raises:
            TimeoutError: If there is none within `timeout_s`; `error` says why.
        """
        wanted = self._clock() - max_age_s
        async with asyncio.timeout(timeout_s), self._changed:
            while self._polled_at is None or self._polled_at < wanted:
                self._wake.set()
                await self._changed.wait()

    async def wait_for(
        self, key: str | int, holds: Callable[[V | None], bool], *, timeout_s: float | None = None
    ) -> V | None:
        """Wait until a condition holds for an object, and return the object.

        Args:
            key: The object's name, or the job's id.
            holds: The condition; its argument is None while there is no such object.

        Raises:
            TimeoutError: If it does not hold within `timeout_s`.
        """
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(
                lambda: self._polled_at is not None and holds(self.get(key))
            )
            return self.get(key)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Cache[V]"]:
        """Keep the picture up to date until the block ends."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                polling = group.create_task(self._poll_forever())
                try:
                    yield self
                finally:
                    self._group = None
                    polling.cancel()
                    for backlog in self._backlogs:
                        backlog.close()
        except BaseExceptionGroup as failures:
            if len(failures.exceptions) == 1:
                raise failures.exceptions[0] from None
            raise

    def refresh(self) -> None:
        """Start the next poll at once."""
        self._wake.set()

    async def note(self, name: str) -> None:
        """Read an object that this client has just changed."""
        await self._take(await self._picture.poll_one(name))

    async def _poll_forever(self) -> None:
        failures = 0
        while True:
            began = self._clock()
            self._wake.clear()
            try:
                events = await self._picture.poll()
                self.error = None
                self._polled_at = began
                failures = 0
            except SlurmError as error:
                events = []
                self.error = error
                failures += 1
            await self._take(events)
            left_s = max(0.0, pause_s(self._interval_s, failures) - (self._clock() - began))
            if failures:  # callers that wait for a fresh poll must not cause a busy loop
                await asyncio.sleep(left_s)
            else:
                # Not wait_for: Python 3.11's loses a cancellation that meets the event.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await self._wake.wait()

    async def _take(self, events: list[Event[V]]) -> None:
        for event in events:
            match event:
                case Modified(old, new):
                    self._unindex(old)
                    self._index(new)
                case Added(new):
                    self._index(new)
                case Deleted(old):
                    self._unindex(old)
                case Restarted():
                    pass
        for backlog in self._backlogs:
            backlog.put(events)
        async with self._changed:
            self._changed.notify_all()

    def _index(self, value: V) -> None:
        for name, key in self._keys.items():
            self._indexes[name].setdefault(key(value), {})[id(value)] = value

    def _unindex(self, value: V) -> None:
        for name, key in self._keys.items():
            indexed = self._indexes[name].get(key(value), {})
            indexed.pop(id(value), None)
            if not indexed:
                self._indexes[name].pop(key(value), None)

    async def _serve(self, backlog: "Backlog[V]", handler: Handler[V]) -> None:
        async for event in backlog.events(self.values):
            answer = handler(event)
            if inspect.isawaitable(answer):
                await answer


@asynccontextmanager
async def cached(
    speaker: Speaker,
    key: str,
    picture: Picture[V],
    *,
    interval_s: float,
    indexes: Mapping[str, Callable[[V], Hashable]] | None,
    clock: Clock = time.monotonic,
) -> AsyncIterator[Cache[V]]:
    """Keep a picture in memory while the block lasts; read objects at once if this client changes them."""
    cache = Cache(picture, interval_s=interval_s, indexes=indexes or {}, clock=clock)

    async def read_change(written: str, name: str) -> None:
        if written == key:
            try:
                await cache.note(name)
            except SlurmError:  # the change is made; the next poll will see it
                cache.refresh()

    speaker.on_write.append(read_change)
    try:
        async with cache.running() as running:
            yield running
    finally:
        speaker.on_write.remove(read_change)
