"""The views of all Slurm clusters in use; an unreachable one affects only its own NodeSets."""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Final

import structlog

from slurmclient.errors import Unavailable
from slurmoperator.nodesets.plan.look import Interest, SlurmFacts
from slurmoperator.nodesets.slurm_view import WorkerView
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError
from slurmruntime.values.oddities import Oddities

_log = structlog.get_logger(__name__)

MOST_SLURMS: Final = 256
"""Slurm clusters that are polled at the same time; further ones are not."""
_TOO_MANY: Final = f"more than {MOST_SLURMS} Slurm clusters are in use and this one is not polled: run another slurm-operator for some of the namespaces"
_LONGEST_REASON: Final = 200
_AGAIN_S: Final = 30.0
"""Pause before a Slurm that could not be opened is tried again."""

OpensSlurm = Callable[[str], AbstractAsyncContextManager[SlurmClient]]
"""Opens the client of a Controller's Slurm, by `namespace/name`; sends nothing yet."""


class WorkerViews:
    """Polls all Slurm clusters in use, during one term of leadership."""

    def __init__(
        self, opens: OpensSlurm, *, clock: Clock, wake: Callable[[str], None], set_aside: Oddities
    ) -> None:
        """Create it without reading anything. It wakes a NodeSet, by its key, when something that concerns it has changed."""
        self._opens = opens
        self._set_aside = set_aside
        self._clock = clock
        self._wake = wake
        self._controllers: dict[str, str] = {}
        """By the keys of the NodeSets that use them."""
        self._views: dict[str, WorkerView] = {}
        self._troubles: dict[str, str] = {}
        """Why a Controller's Slurm has no view."""
        self._has_news = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Poll each Slurm by itself until `stop` is set."""
        ends: dict[str, asyncio.Event] = {}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wake_at(stop))
            while not stop.is_set():
                self._has_news.clear()
                in_use = dict.fromkeys(self._controllers.values())
                polled = share_fairly(in_use, MOST_SLURMS)
                for controller in ends.keys() - polled:
                    ends[controller].set()
                for controller in self._troubles.keys() - in_use.keys():
                    del self._troubles[controller]
                for controller in in_use:
                    if controller not in polled:
                        self._report(controller, _TOO_MANY)
                    elif controller not in ends and len(ends) < MOST_SLURMS:
                        ends[controller] = asyncio.Event()
                        group.create_task(self._read(controller, ends))
                await self._has_news.wait()
            for end in ends.values():
                end.set()

    def of(self, controller: str) -> WorkerView | None:
        """Return the view of a Controller's Slurm; None while it is not polled."""
        return self._views.get(controller)

    def opened(self, controller: str) -> WorkerView:
        """Return the view of a Controller's Slurm, to write to that.

        Raises:
            Unavailable: it is not polled any more.
        """
        view = self._views.get(controller)
        if view is None:
            raise Unavailable("write", f"Slurm of Controller {controller} is not followed")
        return view

    def facts(self, controller: str, nodes: Iterable[str]) -> SlurmFacts:
        """Return what is known of a Controller's Slurm, and of these nodes in particular."""
        view = self._views.get(controller)
        if view is None:
            return SlurmFacts(trouble=self._troubles.get(controller))
        return view.facts(nodes)

    def follow(self, controller: str, key: str, interest: Interest) -> None:
        """Register what a NodeSet needs to know of its Controller's Slurm from now on."""
        if self._controllers.get(key) != controller:
            self._controllers[key] = controller
            self._has_news.set()
        if (view := self._views.get(controller)) is not None:
            view.follow(key, interest)

    def forget(self, key: str) -> None:
        """Drop a NodeSet, and stop polling its Slurm if it was the last."""
        controller = self._controllers.pop(key, "")
        if (view := self._views.get(controller)) is not None:
            view.forget(key)
        self._has_news.set()

    async def _read(self, controller: str, ends: dict[str, asyncio.Event]) -> None:
        name = f"Slurm of Controller {controller}"
        try:
            async with self._opens(controller) as slurm:
                view = WorkerView(
                    slurm, name=name, clock=self._clock, wake=self._wake, set_aside=self._set_aside
                )
                self._views[controller] = view
                self._troubles.pop(controller, None)
                _log.info("slurm.followed", controller=controller)
                self._wake_all(controller)  # so that they register their interest
                await view.run(ends[controller])
        except Exception as error:  # noqa: BLE001  # an odd Slurm costs only its own NodeSets
            self._views.pop(controller, None)
            if not isinstance(error, PeerError):
                self._set_aside.crashed("object", name, error)
            why = faults.shortened(f"{type(error).__name__}: {error}", _LONGEST_REASON)
            self._report(controller, f"Slurm cannot be reached: {why}")
            await pause(_AGAIN_S, ends[controller])
        finally:
            self._views.pop(controller, None)
            del ends[controller]
            self._has_news.set()
            _log.info("slurm.left", controller=controller)

    def _report(self, controller: str, trouble: str) -> None:
        if self._troubles.get(controller) != trouble:
            self._troubles[controller] = trouble
            self._wake_all(controller)

    def _wake_all(self, controller: str) -> None:
        for key, used in self._controllers.items():
            if used == controller:
                self._wake(key)

    async def _wake_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._has_news.set()


def share_fairly(controllers: Iterable[str], most: int) -> frozenset[str]:
    """Return the Controllers, `namespace/name`, whose Slurm is polled: one of each namespace in turn, its first ones first."""
    by_namespace: dict[str, list[str]] = {}
    for controller in controllers:
        by_namespace.setdefault(controller.partition("/")[0], []).append(controller)
    rounds = itertools.zip_longest(*by_namespace.values())
    in_turn = filter(None, itertools.chain.from_iterable(rounds))
    return frozenset(itertools.islice(in_turn, most))
