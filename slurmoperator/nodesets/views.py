"""The view of each Controller's Slurm, while NodeSets want to know something of it: one that is away costs only its own."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import structlog

from slurmoperator.nodesets.slurm_view import Interest, WorkerView
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError
from slurmruntime.values.oddities import Oddities

_log = structlog.get_logger(__name__)

MOST_SLURMS: Final = 256
"""Slurms that are read at the same time; of further ones nothing is known."""
_TOO_MANY: Final = f"more than {MOST_SLURMS} Slurms are there, and this one is not read: run another slurm-operator for some of their namespaces"
_LONGEST_REASON: Final = 200
_AGAIN_S: Final = 30.0
"""After a Slurm that could not even be opened."""

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
        self._troubles: dict[str, str] = {}
        """Why a Controller's Slurm has no view."""
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
                for controller in self._troubles.keys() - wanted.keys():
                    del self._troubles[controller]
                for controller in [each for each in wanted if each not in ends]:
                    if len(ends) < MOST_SLURMS:
                        ends[controller] = asyncio.Event()
                        group.create_task(self._read(controller, ends))
                    else:
                        self._tell(controller, _TOO_MANY)
                await self._has_news.wait()
            for end in ends.values():
                end.set()

    def of(self, controller: str) -> WorkerView | None:
        """Return what is known of a Controller's Slurm; None while it is not read."""
        return self._views.get(controller)

    def trouble(self, controller: str) -> str | None:
        """Return why a Controller's Slurm is not known; "" if it is, None if nobody has tried yet."""
        view = self._views.get(controller)
        return view.trouble if view is not None else self._troubles.get(controller)

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
        name = f"Slurm of Controller {controller}"
        try:
            async with self._opens(controller) as slurm:
                view = WorkerView(
                    slurm,
                    name=name,
                    clock=self._clock,
                    wake=self._wake,
                    set_aside=self._set_aside,
                )
                self._views[controller] = view
                self._troubles.pop(controller, None)
                _log.info("slurm.followed", controller=controller)
                self._wake_all(controller)  # to say what they want to know
                await view.run(ends[controller])
        except Exception as error:  # noqa: BLE001  # an odd Slurm costs only its own NodeSets
            self._views.pop(controller, None)
            if not isinstance(error, PeerError):
                self._set_aside.crashed("object", name, error)
            why = faults.shortened(f"{type(error).__name__}: {error}", _LONGEST_REASON)
            self._tell(controller, f"it cannot be reached: {why}")
            await pause(_AGAIN_S, ends[controller])
        finally:
            self._views.pop(controller, None)
            del ends[controller]
            self._has_news.set()
            _log.info("slurm.left", controller=controller)

    def _tell(self, controller: str, trouble: str) -> None:
        if self._troubles.get(controller) != trouble:
            self._troubles[controller] = trouble
            self._wake_all(controller)

    def _wake_all(self, controller: str) -> None:
        for key, of in self._controllers.items():
            if of == controller:
                self._wake(key)

    async def _ring_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._has_news.set()
