"""The node controller's view of Slurm's nodes: one list for all, on a budget.

Slurm sends no notification of node changes. We poll whether anything has changed and, if so, read
the list; every decision is made from that list. Only before an existing node is changed is it read
individually.
"""

import asyncio
from collections.abc import Callable

import structlog

from bridge.domain.observation.node_book import NodeBook
from bridge.slurm import nodes, updating
from slurmclient.errors import SlurmError, TargetNotFound
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, SlurmNode

_log = structlog.get_logger(__name__)

_SHORTEST_PAUSE_S = 0.5
"""Minimum interval between lists; writes within it share the next list."""

_WHOLE_AFTER_S = 60.0
"""How long "nothing has changed" is trusted; slurmctld's clock may have been set back."""

_SWEPT_EVERY_S = 300.0
"""Interval between searches for stand-in node records that were left behind."""


class SlurmNodes:
    """The view of Slurm's nodes during one term of leadership."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        cluster: ClusterId,
        interval_s: float,
        clock: Clock,
        wake: Callable[[SlurmNode], None],
        on_read: Callable[[], None],
    ) -> None:
        """Start with nothing read.

        Args:
            wake: called with the name of each node whose facts have changed.
            on_read: called after each list.
        """
        self._slurm = slurm
        self._cluster = cluster
        self._sweep_at = 0.0
        self._interval_s = interval_s
        self._clock = clock
        self._wake = wake
        self._on_read = on_read
        self.book = NodeBook()
        """What is certain about Slurm's nodes."""
        self._listing: nodes.NodeListing | None = None
        self._listed_at = 0.0
        self._asked = asyncio.Event()
        self._problem = ""

    async def read(self, name: SlurmNode) -> SlurmNodeFacts | None:
        """Read one node from Slurm now; may raise SlurmError."""
        began = self._clock.monotonic()
        try:
            node = await nodes.node(self._slurm, name)
        except TargetNotFound:
            node = None
        self.book.saw(name, node, at=began)
        return node

    def deleted(self, name: SlurmNode) -> None:
        """Record that Slurm has confirmed the deletion of a node."""
        self.book.saw(name, None, at=self._clock.monotonic())

    def wrote(self, name: SlurmNode) -> None:
        """Record that a write to a node is over, whatever its result; call it in a `finally`."""
        self.book.wrote(name, at=self._clock.monotonic())
        self._asked.set()

    async def run(self) -> None:
        """Read the list repeatedly until cancelled."""
        while True:
            began = self._clock.monotonic()
            self._asked.clear()
            await self._read_all(began)
            took_s = self._clock.monotonic() - began
            shortest_s = max(_SHORTEST_PAUSE_S, 4 * took_s)
            liveness.turned(shortest_s)
            await self._clock.sleep(shortest_s)
            if self._problem or self.book.is_settled:
                liveness.turned(left_s := self._interval_s - shortest_s - took_s)
                await pause(left_s, self._asked)

    async def _read_all(self, began: float) -> None:
        is_good = self.book.is_settled and began - self._listed_at < _WHOLE_AFTER_S
        before = self._listing if is_good else None
        try:
            listed = await nodes.refresh(self._slurm, before)
        except SlurmError as error:
            if str(error) != self._problem:
                _log.warning("nodes.unread", error=str(error))
            self._problem = str(error)
            return
        self._problem = ""
        if listed is not before:
            self._listing, self._listed_at = listed, began
            for name in self.book.read(listed.nodes, began=began):
                self._wake(name)
        self._on_read()
        if began >= self._sweep_at:
            self._sweep_at = began + _SWEPT_EVERY_S
            await self._sweep()

    async def _sweep(self) -> None:
        try:
            await updating.remove_stand_ins(self._slurm, self._cluster)
        except SlurmError as error:
            _log.warning("nodes.unswept", error=str(error))
