"""Reflector that keeps a cache up to date: list, then watch from the list's version onwards.

What can go wrong, and the reaction:

- The API server ends a watch after `timeoutSeconds`: watch again from the last version seen.
- The connection breaks or is silent for longer than the interval of bookmarks allows, or the
  response is 5xx or 429: the same after a delay with jitter, which doubles up to a cap and is never
  shorter than Retry-After, of which at most five minutes count.
- 410 or any other error: our version is unusable; list again. Objects that the list lacks are gone.
- After an interruption the API server's version is lower than ours: its etcd was restored from a
  backup. A watch from our version would be silent until that version is reached again and would
  never deliver the changes before it; list again.
- An object that cannot be decoded is set aside, and the cache keeps its last version: one odd object
  must not stop all others.

Otherwise versions are opaque: they are sent back unchanged and compared for equality only.
Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar, assert_never

import msgspec
import structlog

from slurmruntime.kube import errors, resource
from slurmruntime.kube.cache import Cache, Share
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.meta import ObjectIdentity
from slurmruntime.kube.resource import Change
from slurmruntime.values import backoff, numbers
from slurmruntime.values.oddities import UNHEARD, About, Oddities

T = TypeVar("T")

_log = structlog.get_logger()

_LARGEST_VERSION = 2**64 - 1
"""The largest revision of etcd."""
_LONGEST_RETRY_AFTER_S = 300.0
"""Longer than any API server asks for; a proxy's header must not leave a cache blind for a day."""

_SLICE = 50
_SLICE_BYTES = 256 * 2**10
"""Objects, or bytes of them, decoded before yielding to the event loop: 2 to 4 ms."""

_LARGE_BYTES = 64 * 2**10
"""Larger objects are decoded on a thread: at the API server's limit of 1.5 MiB the worst take 0.25 s of CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Page size and timeouts of a reflector."""

    page_size: int = 500
    """About 4 MB of pods."""
    watch_s: float = 300
    """The API server is asked to end a watch after one to two times this, to spread reconnects."""
    idle_timeout_s: float = 120
    """A connection counts as lost after this long without a byte; bookmarks come about every
    minute."""
    first_pause: timedelta = timedelta(seconds=0.5)
    longest_pause: timedelta = timedelta(seconds=30)


class Reflector(Generic[T]):
    """Lists and watches one kind, restricted by selectors, into one cache."""

    def __init__(
        self,
        client: KubeClient,
        cache: Cache[T] | Share[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        timing: Timing | None = None,
        set_aside: Oddities = UNHEARD,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        on_turn: Callable[[float], None] = lambda _rests_s: None,
    ) -> None:
        """Prepare the reflector; nothing is sent before `run`.

        Args:
            cache: filled by this reflector only; its kind determines what to list.
            on_turn: called as a sign of life, with the number of seconds the reflector may now be
                silent: `idle_timeout_s` or a pause.
        """
        self._client = client
        self._cache = cache
        self._kind = cache.kind
        self._timing = timing or Timing()
        self._set_aside = set_aside
        self._unreadable: dict[str, str] = {}
        """Uid → name of objects that are set aside."""
        self._monotonic = monotonic
        self._jitter = jitter
        self._on_turn = on_turn
        selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
        self._selectors = {name: text for name, text in selectors.items() if text}
        self._log = _log.bind(path=cache.kind.path, **self._selectors)
        self._version = ""
        """The version to watch from; "" if a list is needed first."""
        self._was_interrupted = False
        self._failures = 0
        """Consecutive failures; a successful list does not reset them, only a watch event does."""
        self._trouble = ""
        self._heard_at = monotonic()

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the cache up to date until `stop` is set; errors of the API server never escape."""
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._follow(stop))
            await stop.wait()
            following.cancel()

    def check(self) -> str | None:
        """Return why the cache is not ready: never listed, or silent for twice the normal time; None if it is ready."""
        silent_s = self._monotonic() - self._heard_at
        if not self._cache.synced.is_set():
            return f"{self._kind.path}: not listed yet: {self._trouble or 'the list is under way'}"
        if silent_s > 2 * self._timing.idle_timeout_s:
            return f"{self._kind.path}: nothing heard for {silent_s:.0f} s: {self._trouble}"
        return None

    async def _follow(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            began = self._monotonic()
            try:
                if self._was_interrupted and await self._went_backwards():
                    self._log.warning("reflector.went_backwards", version=self._version)
                    self._version = ""
                self._was_interrupted = False
                if not self._version:
                    await self._list()
                await self._watch()
            except errors.KubeError as error:
                if not isinstance(error, errors.Unavailable):
                    self._version = ""
                if self._monotonic() - began > self._timing.longest_pause.total_seconds():
                    self._failures = 0  # it worked for a while
                self._was_interrupted = True
                await self._pause(error)

    async def _went_backwards(self) -> bool:
        """Check whether the API server's version is lower than ours.

        Versions are increasing integers (KEP-5504); if either is not an integer, assume no.
        """
        params = {**self._selectors, "limit": "1"}
        body = await self._client.request("GET", self._kind.path, params=params)
        now = resource.page(self._kind.path, body).metadata.resource_version
        current, ours = (numbers.integer(v, most=_LARGEST_VERSION) for v in (now, self._version))
        return current is not None and ours is not None and current < ours

    async def _pause(self, error: errors.KubeError) -> None:
        self._failures += 1
        self._trouble = str(error)
        timing = self._timing
        longest = backoff.delay(
            self._failures, first=timing.first_pause, cap=timing.longest_pause
        ).total_seconds()
        asked_s = min(error.retry_after_s or 0, _LONGEST_RETRY_AFTER_S)
        pause_s = max(longest * (1 + self._jitter()) / 2, asked_s)
        self._log.warning("reflector.interrupted", error=str(error), retry_in_s=round(pause_s, 2))
        self._on_turn(pause_s)
        await asyncio.sleep(pause_s)

    async def _list(self) -> None:
        began = self._monotonic()
        keys: set[str] = set()
        params = {**self._selectors, "limit": str(self._timing.page_size)}
        while True:
            body = await self._client.request("GET", self._kind.path, params=params)
            page = resource.page(self._kind.path, body)
            self._heard_at = self._monotonic()
            await self._take(page.items, keys)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        self._cache.retain(keys)
        for uid in self._unreadable.keys() - keys:
            self._note_readable(uid)
        self._version = page.metadata.resource_version
        self._cache.listed()
        took_s = round(self._monotonic() - began, 3)
        self._log.info("reflector.listed", objects=len(keys), duration_s=took_s)

    async def _take(self, items: list[msgspec.Raw], keys: set[str]) -> None:
        count, length = _SLICE, 0  # others have waited for the page
        for item in items:
            count, length = count + 1, length + len(memoryview(item))
            if count > _SLICE or length > _SLICE_BYTES:
                count = length = 0
                await asyncio.sleep(0)
            listed = await self._read(item)
            if isinstance(listed, ObjectIdentity):
                keys |= {listed.uid, listed.name}  # whichever of them is the key
            elif listed is not None:
                keys.add(self._kind.identify(listed).key)
                self._cache.put_listed(listed)

    async def _watch(self) -> None:
        params = {
            **self._selectors,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(round(self._timing.watch_s * (1 + self._jitter()))),
        }
        path, idle_timeout_s = self._kind.path, self._timing.idle_timeout_s
        has_spoken = False
        self._on_turn(idle_timeout_s)
        async with self._client.stream(path, params=params, idle_timeout_s=idle_timeout_s) as lines:
            self._on_turn(idle_timeout_s)
            async for line in lines:
                self._on_turn(idle_timeout_s)
                self._heard_at = self._monotonic()
                await self._apply(*resource.event(path, line))
                has_spoken, self._failures = True, 0
        if not has_spoken:
            raise errors.Unavailable("WATCH", path, message="closed without an event")

    async def _apply(self, change: Change, body: msgspec.Raw) -> None:
        match change:
            case Change.ERROR:
                raise errors.from_watch(self._kind.path, body)
            case Change.BOOKMARK:
                self._version = resource.bookmark(self._kind.path, body)
            case Change.ADDED | Change.MODIFIED | Change.DELETED:
                await self._take_change(change, body)
            case _:
                assert_never(change)

    async def _take_change(self, change: Change, body: msgspec.Raw) -> None:
        new = await self._read(body)
        if new is None:
            raise resource.malformed(f"watch event of {self._kind.path}", ValueError("no metadata"))
        if isinstance(new, ObjectIdentity):
            if change is Change.DELETED:
                self._note_readable(new.uid)
                for key in (new.uid, new.name):  # whichever of them is the key
                    self._cache.remove(key)
            self._version = new.resource_version
            return
        key, version, _ = self._kind.identify(new)
        if change is Change.DELETED:
            self._cache.remove(key)
        else:
            self._cache.put(new)
        self._version = version

    async def _read(self, body: msgspec.Raw) -> T | ObjectIdentity | None:
        """Decode an object; return the identity of one that is set aside, or None without one."""
        try:
            if len(memoryview(body)) > _LARGE_BYTES:
                decoded = await asyncio.to_thread(self._kind.read, body)
            else:
                decoded = self._kind.read(body)
        except errors.Malformed as error:
            unreadable = _identity(body)
            self._log.error("reflector.object_unreadable", error=str(error))
            self._report(unreadable, str(error))
            return unreadable
        except Exception as error:  # noqa: BLE001  # one odd object must not end the process
            unreadable = _identity(body)
            name = _name(unreadable)
            self._set_aside.crashed(self._kind.called, name, error)
            if unreadable is not None:
                self._note_unreadable(unreadable.uid, name)
            return unreadable
        if self._unreadable:
            self._note_readable(resource.identity(body).uid)
        return decoded

    def _report(self, unreadable: ObjectIdentity | None, why: str) -> None:
        name = _name(unreadable)
        about = None
        if unreadable is not None:
            self._note_unreadable(unreadable.uid, name)
            if self._kind.api_kind:  # it can carry an Event
                about = About(
                    kind=self._kind.api_kind,
                    namespace=unreadable.namespace,
                    name=unreadable.name,
                    uid=unreadable.uid,
                )
        self._set_aside.tell(self._kind.called, name, why, about=about)

    def _note_unreadable(self, uid: str, name: str) -> None:
        self._unreadable[uid] = self._cache.unreadable[uid] = name

    def _note_readable(self, uid: str) -> None:
        name = self._unreadable.pop(uid, None)
        self._cache.unreadable.pop(uid, None)
        if name is not None:
            self._set_aside.settled(self._kind.called, name)


def _identity(body: msgspec.Raw) -> ObjectIdentity | None:
    try:
        return resource.identity(body)
    except errors.Malformed:
        return None


def _name(unreadable: ObjectIdentity | None) -> str:
    if unreadable is None:
        return "without a name"
    namespace = f"{unreadable.namespace}/" if unreadable.namespace else ""
    return f"{namespace}{unreadable.name}"
