"""In-memory cache of a watch: objects by key and by secondary index, with change callbacks.

There are two writers: the reflector (or several, each with a `Share`), and `observe`, which lets a caller see its own
write before the watch delivers it. Everything runs on the event loop without awaiting, so a reader sees one
consistent state between two awaits.

A subscriber that raises affects only the object it raised on. That object is set aside and missing
from that subscriber's view until its next version arrives or `try_again` delivers it once more.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

from slurmruntime.kube.resource import ResourceKind
from slurmruntime.values.oddities import UNHEARD, Oddities

T = TypeVar("T")

Callback = Callable[[T | None, T | None], None]
"""Called with (old, new): (None, new) for an addition, (old, None) for a deletion."""

_INDEXING = -1
"""Subscriber number that stands for the indexes."""


class Index(Generic[T]):
    """Secondary index of a cache; create one with `Cache.index`."""

    def __init__(self, by: Callable[[T], Iterable[str]]) -> None:
        self._by = by
        self._entries: dict[str, dict[str, T]] = {}

    def get(self, value: str) -> list[T]:
        """Return every object for which `by` yields this value, in no particular order."""
        return list(self._entries.get(value, {}).values())

    def _change(self, key: str, old: T | None, new: T | None) -> None:
        if old is not None:
            for value in self._where(old):
                entries = self._entries.get(value, {})
                entries.pop(key, None)
                if not entries:
                    self._entries.pop(value, None)
        if new is not None:
            for value in set(self._by(new)):
                self._entries.setdefault(value, {})[key] = new

    def _where(self, old: T) -> set[str]:
        try:
            return set(self._by(old))
        except Exception:  # noqa: BLE001  # it raised on arrival, too: not indexed
            return set()


class Cache(Generic[T]):
    """Objects of one kind, in the latest state the API server has sent."""

    def __init__(self, kind: ResourceKind[T], set_aside: Oddities = UNHEARD) -> None:
        self.kind = kind
        self._set_aside = set_aside
        self._troubles: dict[str, set[int]] = {}
        """Key → the numbers of the subscribers that raised on that object."""
        self._objects: dict[str, T] = {}
        self._ahead: dict[str, str] = {}
        """Key → the version stored by `observe`, until the watch has caught up with it."""
        self._indexes: list[Index[T]] = []
        self._callbacks: list[Callback[T]] = []
        self.synced = asyncio.Event()
        """Set once the first list is complete, of every share if there are any; before that, absence
        means nothing."""
        self._shares: list[Share[T]] = []
        self.unreadable: dict[str, str] = {}
        """Uid → full name of objects that cannot be decoded: they may be missing here, but they exist."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        """Return the object with this key, or None."""
        return self._objects.get(key)

    def values(self) -> list[T]:
        """Return a snapshot of all objects."""
        return list(self._objects.values())

    def index(self, by: Callable[[T], Iterable[str]]) -> Index[T]:
        """Maintain an index by the strings that `by` yields; `by` must be deterministic."""
        index = Index(by)
        for key, cached in self._objects.items():
            self._enter(index, key, None, cached)
        self._indexes.append(index)
        return index

    def subscribe(self, callback: Callback[T]) -> None:
        """Call back for every object already cached, then for every later change."""
        self._callbacks.append(callback)
        for key, cached in list(self._objects.items()):
            self._notify(len(self._callbacks) - 1, key, None, cached)

    def try_again(self) -> None:
        """Deliver each object again, as newly added, to the subscribers that raised on it."""
        for key, troubled in list(self._troubles.items()):
            cached = self._objects.get(key)
            for number in sorted(troubled - {_INDEXING}):
                self._notify(number, key, None, cached)
            self._check(key, cached)

    def observe(self, new: T, *, base: str) -> None:
        """Store the object returned by our own write, so that the next decision sees it.

        Versions are opaque, but `new` is known to come after `base`, the version the writer read here.
        While `base` is still cached, `new` is ahead of the watch: it is stored, and what the watch
        delivers for this object is ignored until `new` itself arrives.

        Otherwise this does nothing: the watch delivers every version in order and is past `new` or about
        to deliver it. An object that is not (or no longer) cached is not brought back. A list always
        wins, because it may skip versions.
        """
        key, version, _ = self.kind.identify(new)
        old = self._objects.get(key)
        if old is None or self.kind.identify(old).version != base or version == base:
            return
        self._ahead[key] = version
        self._set(key, new)

    def put(self, new: T) -> None:
        """Store an object delivered by the watch."""
        key, version, _ = self.kind.identify(new)
        ahead = self._ahead.get(key)
        if ahead is None:
            self._set(key, new)
        elif ahead == version:
            del self._ahead[key]

    def put_listed(self, new: T) -> None:
        """Store an object from a list."""
        key = self.kind.identify(new).key
        self._ahead.pop(key, None)
        self._set(key, new)

    def remove(self, key: str) -> None:
        """Remove a deleted object; do nothing if it is not cached."""
        self._ahead.pop(key, None)
        old = self._objects.pop(key, None)
        if old is not None:
            self._changed(key, old, None)

    def retain(self, keys: Collection[str]) -> None:
        """Remove every object that a complete list did not contain."""
        for key in self._objects.keys() - keys:
            self.remove(key)

    def listed(self) -> None:
        """Note that a list is complete."""
        self.synced.set()

    def share(self) -> "Share[T]":
        """Return a part for one of several reflectors; create all of them before any is listed."""
        self._shares.append(Share(self, self._share_listed))
        return self._shares[-1]

    def _share_listed(self) -> None:
        if all(share.synced.is_set() for share in self._shares):
            self.synced.set()

    def _set(self, key: str, new: T) -> None:
        old = self._objects.get(key)
        if old is not None and self.kind.identify(old).version == self.kind.identify(new).version:
            return
        self._objects[key] = new
        self._changed(key, old, new)

    def _changed(self, key: str, old: T | None, new: T | None) -> None:
        if troubled := self._troubles.get(key):
            troubled.discard(_INDEXING)
        for index in self._indexes:
            self._enter(index, key, old, new)
        for number in range(len(self._callbacks)):
            self._notify(number, key, old, new)
        if new is None and key in self._troubles:
            self._troubles[key].clear()
        self._check(key, new or old)

    def _enter(self, index: Index[T], key: str, old: T | None, new: T | None) -> None:
        try:
            index._change(key, old, new)  # noqa: SLF001  # the two classes form one unit
        except Exception as error:  # noqa: BLE001  # only this object is left out of the index
            self._crashed(_INDEXING, key, new or old, error)

    def _notify(self, number: int, key: str, old: T | None, new: T | None) -> None:
        try:
            self._callbacks[number](old, new)
        except Exception as error:  # noqa: BLE001  # one odd object must not end the process
            self._crashed(number, key, new or old, error)
        else:
            if key in self._troubles:
                self._troubles[key].discard(number)

    def _crashed(self, number: int, key: str, cached: T | None, error: Exception) -> None:
        self._set_aside.crashed(self.kind.called, self._name(key, cached), error)
        self._troubles.setdefault(key, set()).add(number)

    def _check(self, key: str, cached: T | None) -> None:
        """Report an object as settled once no subscriber raises on it, or once it is gone."""
        if self._troubles.get(key) == set():
            del self._troubles[key]
            self._set_aside.settled(self.kind.called, self._name(key, cached))

    def _name(self, key: str, cached: T | None) -> str:
        return key if cached is None else self.kind.identify(cached).name


class Share(Generic[T]):
    """The part of a cache that one of several reflectors fills: each object is in one share only.

    An object that a list lacks is removed from this share; the others' objects stay.
    """

    def __init__(self, cache: Cache[T], on_listed: Callable[[], None]) -> None:
        """on_listed: called after each complete list."""
        self._cache = cache
        self._on_listed = on_listed
        self._keys: set[str] = set()
        self.kind = cache.kind
        self.unreadable = cache.unreadable
        self.synced = asyncio.Event()
        """Set once the first list of this share is complete."""

    def put(self, new: T) -> None:
        """Store an object delivered by the watch."""
        self._keys.add(self.kind.identify(new).key)
        self._cache.put(new)

    def put_listed(self, new: T) -> None:
        """Store an object from a list."""
        self._keys.add(self.kind.identify(new).key)
        self._cache.put_listed(new)

    def remove(self, key: str) -> None:
        """Remove a deleted object; do nothing if it is not in this share."""
        if key in self._keys:
            self._keys.discard(key)
            self._cache.remove(key)

    def retain(self, keys: Collection[str]) -> None:
        """Remove every object of this share that a complete list did not contain."""
        for key in self._keys.difference(keys):
            self.remove(key)

    def listed(self) -> None:
        """Note that a list of this share is complete."""
        self.synced.set()
        self._on_listed()
