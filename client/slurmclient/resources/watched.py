"""Collections that can be watched: jobs, nodes, partitions, reservations."""

import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, overload

from msgspec import Struct

from slurmclient.resources.collection import Collection, V
from slurmclient.watching.cache import Cache, cached
from slurmclient.watching.events import Event
from slurmclient.watching.named_picture import NamedPicture
from slurmclient.watching.picture import Picture
from slurmclient.watching.polling import watch

M = TypeVar("M", bound=Struct)


class Watched(Collection[M]):
    """Adds `watch` and `cache`."""

    @overload
    def watch(
        self, *, interval_s: float = ..., resync_s: float = ...
    ) -> AsyncIterator[Event[M]]: ...
    @overload
    def watch(
        self, *, as_: type[V], interval_s: float = ..., resync_s: float = ...
    ) -> AsyncIterator[Event[V]]: ...
    def watch(self, *, as_: Any = None, interval_s: float = 1.0, resync_s: float = 300.0) -> Any:
        """Give every change that is seen: first all objects as `Added`, then events in order, until you stop.

        Slurm has no watch: what comes and goes between two looks is not seen.

        Args:
            as_: A struct with the fields you need: a change of another field is none.
            interval_s: Between the beginnings of two looks. A look at 10 000 jobs costs slurmrestd 50 ms and more.
            resync_s: How often jobs are listed whole, to see changes that their states do not show.

        Raises:
            Unauthorized: Slurm does not accept the token. Whatever else goes wrong is waited out.
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
        as_: Any = None,
        interval_s: float = 1.0,
        resync_s: float = 300.0,
        indexes: Any = None,
    ) -> Any:
        """Keep all objects in memory while the block lasts: see `slurmclient.cache`. `indexes` are functions of an object."""
        return cached(
            self._speaker,
            self._key,
            self._picture(as_ or self._kind, resync_s),
            interval_s=interval_s,
            indexes=indexes,
        )

    def _picture(self, kind: type[V], resync_s: float) -> Picture[V]:
        raise NotImplementedError


class WatchedNames(Watched[M]):
    """Those that have names: they are listed whole."""

    def _picture(self, kind: type[V], resync_s: float) -> Picture[V]:  # noqa: ARG002  # every look is a whole one
        return NamedPicture(
            self._speaker,
            kind,
            time.monotonic,
            lists=self._lists,
            gets=self._gets,
            key=self._key,
            parameter=self._parameter,
        )
