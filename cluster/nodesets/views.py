"""The view of each Controller's Slurm, while a NodeSet wants to know something of it: one that is away costs only its own NodeSets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import structlog

from bridge.process.clock import Clock
from bridge.slurm.client import SlurmClient
from cluster.nodesets.slurm_view import Interest, WorkerView

_log = structlog.get_logger(__name__)

MOST_SLURMS: Final = 256
"""Slurms that are read at the same time, each over a connection or two; of further ones nothing is known."""

OpensSlurm = Callable[[str], AbstractAsyncContextManager[SlurmClient]]
"""Opens the client of a Controller's Slurm, by `namespace/name`; nothing is sent yet."""


class WorkerViews:
    """Readings of all Slurms, during one term of leadership."""

    def __init__(self, opens: OpensSlurm, *, clock: Clock, wake: Callable[[str], None]) -> None:
        """Prepare it; nothing is read.

        Args:
            opens: opens a client.
            clock: of the process.
            wake: called with the key of a NodeSet that has news.
        """
        self._opens = opens
        self._clock = clock
        self._wake = wake
        self._views: dict[str, WorkerView] = {}
        self._followed: dict[str, str] = {}
        """Controllers by the keys of NodeSets."""
        self._ends: dict[str, asyncio.Event] = {}
        self._wanted: asyncio.Queue[tuple[str, Interest, str]] = asyncio.Queue()
        self._opening: set[str] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Read until told to stop; each Slurm by itself."""
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(stop.wait())
            while not stop.is_set():
                asked = group.create_task(self._wanted.get())
                await asyncio.wait((waiting, asked), return_when=asyncio.FIRST_COMPLETED)
                if not asked.done():
                    asked.cancel()
                    continue
                controller, interest, key = asked.result()
                if controller in self._opening:
                    if (view := self._views.get(controller)) is not None:
                        view.follow(key, interest)
                    continue
                self._opening.add(controller)
                group.create_task(self._serve(controller, interest, key, stop))
            for each in self._ends.values():
                each.set()

    def of(self, controller: str) -> WorkerView | None:
        """Return what is known of a Controller's Slurm; None if nobody has read it yet."""
        return self._views.get(controller)

    def follow(self, controller: str, key: str, interest: Interest) -> None:
        """Remember what a NodeSet wants to know of its Controller's Slurm from now on."""
        self._followed[key] = controller
        view = self._views.get(controller)
        if view is not None:
            view.follow(key, interest)
        elif controller not in self._opening and len(self._opening) < MOST_SLURMS:
            self._wanted.put_nowait((controller, interest, key))

    def forget(self, key: str) -> None:
        """Forget a NodeSet; a Slurm of which nobody wants to know anything any more is left."""
        controller = self._followed.pop(key, "")
        view = self._views.get(controller)
        if view is not None:
            view.forget(key)
            if controller not in self._followed.values():
                self._ends[controller].set()

    async def _serve(
        self, controller: str, interest: Interest, key: str, stop: asyncio.Event
    ) -> None:
        end = self._ends[controller] = asyncio.Event()
        try:
            async with self._opened(controller) as view:
                view.follow(key, interest)
                self._wake(key)  # others may have been told nothing meanwhile
                await view.run(end)
        finally:
            self._opening.discard(controller)
            self._ends.pop(controller, None)
        if not stop.is_set():
            for other, wanted in self._followed.items():
                if wanted == controller:  # it came while this one ended
                    self._wake(other)

    @asynccontextmanager
    async def _opened(self, controller: str) -> AsyncIterator[WorkerView]:
        async with self._opens(controller) as slurm:
            view = WorkerView(slurm, clock=self._clock, wake=self._wake)
            self._views[controller] = view
            _log.info("slurm.followed", controller=controller)
            try:
                yield view
            finally:
                del self._views[controller]
                _log.info("slurm.left", controller=controller)
