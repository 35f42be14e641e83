"""The view of each Controller's Slurm, while NodeSets want to know something of it: one that is away costs only its own."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import structlog

from bridge.domain.oddities import Oddities
from bridge.process.clock import Clock
from bridge.slurm.client import SlurmClient
from cluster.nodesets.slurm_view import Interest, WorkerView

_log = structlog.get_logger(__name__)

MOST_SLURMS: Final = 256
"""Slurms that are read at the same time; of further ones nothing is known."""

OpensSlurm = Callable[[str], AbstractAsyncContextManager[SlurmClient]]
"""Opens the client of a Controller's Slurm, by `namespace/name`; nothing is sent yet."""


class WorkerViews:
    """Readings of all Slurms, during one term of leadership."""

    def __init__(
        self,
        opens: OpensSlurm,
        *,
        clock: Clock,
        wake: Callable[[str], None],
        set_aside: Oddities,
    ) -> None:
        """Prepare it; nothing is read.

        Args:
            opens: opens a client.
            clock: of the process.
            wake: called with the key of a NodeSet that has news.
            set_aside: told of crashes.
        """
        self._opens = opens
        self._set_aside = set_aside
        self._clock = clock
        self._wake = wake
        self._controllers: dict[str, str] = {}
        """By the keys of the NodeSets that want to know something."""
        self._views: dict[str, WorkerView] = {}
        self._has_news = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Read until told to stop; each Slurm by itself."""
        ends: dict[str, asyncio.Event] = {}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ring_at(stop))
            while not stop.is_set():
                self._has_news.clear()
                wanted = dict.fromkeys(self._controllers.values())
                for controller in ends.keys() - wanted.keys():
                    ends[controller].set()
                for controller in [each for each in wanted if each not in ends]:
                    if len(ends) < MOST_SLURMS:
                        ends[controller] = asyncio.Event()
                        group.create_task(self._read(controller, ends))
                await self._has_news.wait()
            for end in ends.values():
                end.set()

    def of(self, controller: str) -> WorkerView | None:
        """Return what is known of a Controller's Slurm; None while it is not read."""
        return self._views.get(controller)

    def follow(self, controller: str, key: str, interest: Interest) -> None:
        """Remember what a NodeSet wants to know of its Controller's Slurm from now on."""
        if self._controllers.get(key) != controller:
            self._controllers[key] = controller
            self._has_news.set()
        if (view := self._views.get(controller)) is not None:
            view.follow(key, interest)

    def forget(self, key: str) -> None:
        """Forget a NodeSet; a Slurm of which nobody wants to know anything any more is left."""
        controller = self._controllers.pop(key, "")
        if (view := self._views.get(controller)) is not None:
            view.forget(key)
        self._has_news.set()

    async def _read(self, controller: str, ends: dict[str, asyncio.Event]) -> None:
        try:
            async with self._opens(controller) as slurm:
                view = WorkerView(
                    slurm,
                    name=f"Slurm of Controller {controller}",
                    clock=self._clock,
                    wake=self._wake,
                    set_aside=self._set_aside,
                )
                self._views[controller] = view
                _log.info("slurm.followed", controller=controller)
                for key, of in self._controllers.items():
                    if of == controller:
                        self._wake(key)  # to say what it wants to know
                await view.run(ends[controller])
        finally:
            self._views.pop(controller, None)
            del ends[controller]
            self._has_news.set()
            _log.info("slurm.left", controller=controller)

    async def _ring_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._has_news.set()
