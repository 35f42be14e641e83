"""What a watch has seen, kept in memory: by key, by secondary indexes, with callbacks on every change.

Only a reflector writes here, and `observe`, which lets a writer see its own write before the watch delivers it.
All of it runs on the event loop and never waits, so a reader between two awaits sees one consistent state.

A subscriber that raises over an object costs that object only: it is set aside, stays out of what that subscriber knows, and
is told to it again with its next version, or by `try_again`.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

from bridge.domain.oddities import UNHEARD, Oddities
from bridge.kube.decode import ResourceKind

T = TypeVar("T")

Callback = Callable[[T | None, T | None], None]
"""Called with (old, new): (None, new) when it appears, (old, None) when it is gone."""


_INDEXING = -1
"""Stands for the indexes among the numbers of subscribers."""


class Index(Generic[T]):
    """The objects of a cache by something else than their key; get one with `Cache.index`."""

    def __init__(self, by: Callable[[T], Iterable[str]]) -> None:
        self._by = by
        self._found: dict[str, dict[str, T]] = {}

    def get(self, value: str) -> list[T]:
        """Every object for which `by` gives this value, in no particular order."""
        return list(self._found.get(value, {}).values())

    def _change(self, key: str, old: T | None, new: T | None) -> None:
        if old is not None:
            for value in self._where(old):
                found = self._found.get(value, {})
                found.pop(key, None)
                if not found:
                    self._found.pop(value, None)
        if new is not None:
            for value in set(self._by(new)):
                self._found.setdefault(value, {})[key] = new

    def _where(self, old: T) -> set[str]:
        try:
            return set(self._by(old))
        except Exception:  # noqa: BLE001  # so it did when it came: it is nowhere, and has been set aside
            return set()


class Cache(Generic[T]):
    """Objects of one kind, as of the last thing the API server told us."""

    def __init__(self, kind: ResourceKind[T], set_aside: Oddities = UNHEARD) -> None:
        self.kind = kind
        """What is in it."""
        self._set_aside = set_aside
        self._troubles: dict[str, set[int]] = {}
        """Key → the subscribers that raised over that object."""
        self._objects: dict[str, T] = {}
        self._ahead: dict[str, str] = {}
        """Key → the version put in by `observe`, until the watch has caught up with it."""
        self._indexes: list[Index[T]] = []
        self._callbacks: list[Callback[T]] = []
        self.synced = asyncio.Event()
        """Set when the first list is complete; before that, absence means nothing."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        """The object of that key, or None."""
        return self._objects.get(key)

    def values(self) -> list[T]:
        """All objects, as of now."""
        return list(self._objects.values())

    def index(self, by: Callable[[T], Iterable[str]]) -> Index[T]:
        """Keep an index by whatever strings `by` finds in an object; it must find the same ones every time."""
        index = Index(by)
        for key, found in self._objects.items():
            self._enter(index, key, None, found)
        self._indexes.append(index)
        return index

    def subscribe(self, callback: Callback[T]) -> None:
        """Be told of every change from now on, and at once of everything that is here already."""
        self._callbacks.append(callback)
        for key, found in list(self._objects.items()):
            self._tell(len(self._callbacks) - 1, key, None, found)

    def try_again(self) -> None:
        """Tell the subscribers that raised over an object of it once more, as if it had just come."""
        for key, troubled in list(self._troubles.items()):
            found = self._objects.get(key)
            for number in sorted(troubled - {_INDEXING}):
                self._tell(number, key, None, found)
            self._check(key, found)

    def observe(self, new: T, *, base: str) -> None:
        """Take in the object that our own write returned, so that the next decision does not see the state before it.

        Versions are opaque, so "newer" has to be known in another way: `new` came after `base`, the version its writer
        had read here. As long as that one still is here, `new` is ahead of the watch. It is put in, and whatever the
        watch delivers for it is passed over until `new` itself arrives: those are the versions in between.
        If the cache has moved on meanwhile, either to `new` or to something that cannot be compared with it, nothing is
        done: the watch, which delivers every version in order, is past `new` or about to deliver it. Something that is
        not here (any more) does not come back either. A list always wins, as it may skip versions.
        """
        key = self.kind.key(new)
        old = self._objects.get(key)
        version = self.kind.version(new)
        if old is None or self.kind.version(old) != base or version == base:
            return
        self._ahead[key] = version
        self._set(key, new)

    def put(self, new: T) -> None:
        """Take in what the watch delivers."""
        key = self.kind.key(new)
        ahead = self._ahead.get(key)
        if ahead is None:
            self._set(key, new)
        elif ahead == self.kind.version(new):
            del self._ahead[key]

    def put_listed(self, new: T) -> None:
        """Take in what a list says."""
        key = self.kind.key(new)
        self._ahead.pop(key, None)
        self._set(key, new)

    def remove(self, key: str) -> None:
        """Forget what is gone; nothing happens where it was not there."""
        self._ahead.pop(key, None)
        old = self._objects.pop(key, None)
        if old is not None:
            self._changed(key, old, None)

    def retain(self, keys: Collection[str]) -> None:
        """Forget whatever a complete list did not contain."""
        for key in self._objects.keys() - keys:
            self.remove(key)

    def _set(self, key: str, new: T) -> None:
        old = self._objects.get(key)
        if old is not None and self.kind.version(old) == self.kind.version(new):
            return
        self._objects[key] = new
        self._changed(key, old, new)

    def _changed(self, key: str, old: T | None, new: T | None) -> None:
        if troubled := self._troubles.get(key):
            troubled.discard(_INDEXING)
        for index in self._indexes:
            self._enter(index, key, old, new)
        for number in range(len(self._callbacks)):
            self._tell(number, key, old, new)
        if new is None and key in self._troubles:
            self._troubles[key].clear()
        self._check(key, new or old)

    def _enter(self, index: Index[T], key: str, old: T | None, new: T | None) -> None:
        try:
            index._change(key, old, new)  # noqa: SLF001  # the two classes are one thing
        except Exception as error:  # noqa: BLE001  # it costs this object its place in the index
            self._crashed(_INDEXING, key, new or old, error)

    def _tell(self, number: int, key: str, old: T | None, new: T | None) -> None:
        try:
            self._callbacks[number](old, new)
        except Exception as error:  # noqa: BLE001  # one object must not end the process; it counts as a crash of ours
            self._crashed(number, key, new or old, error)
        else:
            if key in self._troubles:
                self._troubles[key].discard(number)

    def _crashed(self, number: int, key: str, found: T | None, error: Exception) -> None:
        self._set_aside.crashed(self.kind.called, self._name(key, found), error)
        self._troubles.setdefault(key, set()).add(number)

    def _check(self, key: str, found: T | None) -> None:
        """Say that an object is well again, or gone."""
        if self._troubles.get(key) == set():
            del self._troubles[key]
            self._set_aside.settled(self.kind.called, self._name(key, found))

    def _name(self, key: str, found: T | None) -> str:
        return self.kind.name(found) if self.kind.name and found is not None else key
