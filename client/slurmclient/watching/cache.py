"""`watch()` and `cache()`: a picture that is kept up to date in the background, and those who hear of its changes.

async with slurm.jobs.cache(indexes={"user": lambda job: job.user_name}) as jobs:
    await jobs.synced(timeout_s=60)
    mine = jobs.by("user", "alice")          # from memory
    jobs.on(print)                           # every event, in order; any number of handlers
    await jobs.fresh()                       # a look that begins now, at the earliest
    await jobs.wait_for("4711", lambda job: job is None or has_ended(job.job_state), timeout_s=60)

What a program changes through the same client is in the cache before the call returns.
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
from slurmclient.watching.watch import pause_s


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
        self._picture = picture
        self._interval_s = interval_s
        self._clock = clock
        self._indexes: dict[str, dict[Hashable, dict[int, V]]] = {name: {} for name in indexes}
        self._keys = indexes
        self._backlogs: list[Backlog[V]] = []
        self._group: asyncio.TaskGroup | None = None
        self._changed = asyncio.Condition()
        self._wake = asyncio.Event()
        self._looked_at: float | None = None
        self.error: SlurmError | None = None
        """Why the last look failed; None: it did not."""

    def get(self, key: str | int) -> V | None:
        """Return an object by its name, a job by its id; None: there is none."""
        return self._picture.objects.get(str(key))

    def values(self) -> list[V]:
        """Return all objects."""
        return list(self._picture.objects.values())

    def __len__(self) -> int:
        return len(self._picture.objects)

    def by(self, index: str, value: Hashable) -> list[V]:
        """Return the objects for which an index has this value."""
        return list(self._indexes[index].get(value, {}).values())

    @property
    def age_s(self) -> float | None:
        """How long ago the last look that succeeded began; None: there has been none."""
        return None if self._looked_at is None else self._clock() - self._looked_at

    def on(self, handler: Handler[V]) -> None:
        """Tell a handler all objects there are, as `Added`, and from then on every event, in order.

        A handler may be a function or a coroutine function; one that is slow makes no other wait. An exception of it ends the
        cache.
        """
        if self._group is None:
            raise RuntimeError("the cache is not open: use it as `async with … as cache`")
        backlog = Backlog[V]()
        self._backlogs.append(backlog)
        self._group.create_task(self._serve(backlog, handler))

    async def synced(self, *, timeout_s: float | None = None) -> None:
        """Wait for the first whole picture.

        Raises:
            TimeoutError: there is none yet; `error` says why.
        """
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self._looked_at is not None)

    async def fresh(self, *, max_age_s: float = 0.0, timeout_s: float | None = None) -> None:
        """Wait for a look that began at most so long ago: by default, one that begins after this call.

        Raises:
            TimeoutError: there is none yet; `error` says why.
        """
        wanted = self._clock() - max_age_s
        async with asyncio.timeout(timeout_s), self._changed:
            while self._looked_at is None or self._looked_at < wanted:
                self._wake.set()
                await self._changed.wait()

    async def wait_for(
        self, key: str | int, holds: Callable[[V | None], bool], *, timeout_s: float | None = None
    ) -> V | None:
        """Wait until something holds for an object, or for its absence (None); return it.

        Raises:
            TimeoutError: it does not.
        """
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(
                lambda: self._looked_at is not None and holds(self.get(key))
            )
            return self.get(key)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Cache[V]"]:
        """Look again and again until the block ends."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                looking = group.create_task(self._look_on())
                try:
                    yield self
                finally:
                    self._group = None
                    looking.cancel()
                    for backlog in self._backlogs:
                        backlog.close()
        except BaseExceptionGroup as failures:
            if len(failures.exceptions) == 1:
                raise failures.exceptions[0] from None
            raise

    def refresh(self) -> None:
        """Look again at once."""
        self._wake.set()

    async def note(self, name: str) -> None:
        """Look at an object that this client has just changed."""
        await self._take(await self._picture.look_at(name))

    async def _look_on(self) -> None:
        failures = 0
        while True:
            began = self._clock()
            self._wake.clear()
            try:
                events = await self._picture.look()
                self.error = None
                self._looked_at = began
                failures = 0
            except SlurmError as error:
                events = []
                self.error = error
                failures += 1
            await self._take(events)
            left_s = max(0.0, pause_s(self._interval_s, failures) - (self._clock() - began))
            if failures:  # who waits for a fresh look must not make us ask in a circle
                await asyncio.sleep(left_s)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), left_s)

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

    def _index(self, one: V) -> None:
        for name, key in self._keys.items():
            self._indexes[name].setdefault(key(one), {})[id(one)] = one

    def _unindex(self, one: V) -> None:
        for name, key in self._keys.items():
            found = self._indexes[name].get(key(one), {})
            found.pop(id(one), None)
            if not found:
                self._indexes[name].pop(key(one), None)

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
    """Keep a picture in memory while the block lasts, and hear of what the client itself changes."""
    cache = Cache(picture, interval_s=interval_s, indexes=indexes or {}, clock=clock)

    async def hear(written: str, name: str) -> None:
        if written == key:
            try:
                await cache.note(name)
            except SlurmError:  # the change was made; the next look sees it
                cache.refresh()

    speaker.on_write.append(hear)
    try:
        async with cache.running() as running:
            yield running
    finally:
        speaker.on_write.remove(hear)
