"""Collections with `watch` and `cache`: jobs, nodes, partitions, reservations."""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, overload

from msgspec import Struct

from slurmclient.calls.speaker import V
from slurmclient.resources.collection import Collection
from slurmclient.watching.cache import Cache, cached
from slurmclient.watching.events import Event
from slurmclient.watching.picture import Picture
from slurmclient.watching.picture_by_name import PictureByName
from slurmclient.watching.polling import watch

M = TypeVar("M", bound=Struct)


class WatchableCollection(Collection[M], ABC):
    """A collection with `watch` and `cache`."""

    @overload
    def watch(
        self, *, interval_s: float = ..., resync_s: float = ...
    ) -> AsyncIterator[Event[M]]: ...
    @overload
    def watch(
        self, *, as_: type[V], interval_s: float = ..., resync_s: float = ...
    ) -> AsyncIterator[Event[V]]: ...
    def watch(
        self, *, as_: type[Struct] | None = None, interval_s: float = 1.0, resync_s: float = 300.0
    ) -> object:
        """Yield `Added` for every object, and then every change that is seen, in order, forever.

        Slurm has no watch, so this polls: an object that comes and goes between two polls is not
        seen. Failed polls are repeated, with pauses of up to 30 s.

        Args:
            as_: A struct with the fields that you need; changes of other fields are ignored.
            interval_s: The time between the beginnings of two polls. A poll of 10 000 jobs costs
                slurmrestd at least 50 ms.
            resync_s: How often to list all jobs, to see changes that their states do not show. Other
                objects are always listed.

        Raises:
            Unauthorized: If Slurm does not accept the token.
            TooOld: If this Slurm does not have such objects.
        """
        return watch(self._picture(as_ or self._kind, resync_s), interval_s=interval_s)

    @overload
    def cache(
        self,
        *,
        interval_s: float = ...,
        resync_s: float = ...,
        indexes: Mapping[str, Callable[[M], Hashable]] | None = ...,
    ) -> AbstractAsyncContextManager[Cache[M]]: ...
    @overload
    def cache(
        self,
        *,
        as_: type[V],
        interval_s: float = ...,
        resync_s: float = ...,
        indexes: Mapping[str, Callable[[V], Hashable]] | None = ...,
    ) -> AbstractAsyncContextManager[Cache[V]]: ...
    def cache(
        self,
        *,
        as_: type[Struct] | None = None,
        interval_s: float = 1.0,
        resync_s: float = 300.0,
        indexes: Any = None,
    ) -> object:
        """Keep all objects in memory while the block lasts; see `Cache`, and for the other arguments `watch`.

        Args:
            indexes: Functions by name that return the value to find an object by.
        """
        return cached(
            self._speaker,
            self._key,
            self._picture(as_ or self._kind, resync_s),
            interval_s=interval_s,
            indexes=indexes,
        )

    @abstractmethod
    def _picture(self, kind: type[V], resync_s: float) -> Picture[V]:
        """Return an empty picture of these objects."""


class CollectionByName(WatchableCollection[M]):
    """A collection of named objects, all of which every poll lists."""

    def _picture(self, kind: type[V], resync_s: float) -> Picture[V]:  # noqa: ARG002  # every poll is a full listing
        return PictureByName(
            self._speaker,
            kind,
            time.monotonic,
            lists=self._lists,
            gets=self._gets,
            key=self._key,
            parameter=self._parameter,
        )
