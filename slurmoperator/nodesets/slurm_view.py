"""Polls one Slurm for the state of workers every few seconds; `WorkerReadings` judges the readings.

Jobs are read only while it matters which nodes have some: a list of all jobs is long. A new leader
starts as if a request of the old one might still be under way.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import structlog

from bridge.slurm import nodes, queue
from bridge.slurm.nodes import NodeListing
from slurmclient.errors import SlurmError
from slurmoperator.nodesets.plan.look import Interest, SlurmFacts
from slurmoperator.workers.readings import WorkerReading, WorkerReadings
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.ids import SlurmNode
from slurmruntime.values.oddities import Oddities

_log = structlog.get_logger(__name__)

READ_EVERY_S: Final = 2.0
"""Longer than the second that Slurm's counters may lag, or two readings could see the same old one."""
LOST_REPLY_S: Final = 10.0
"""How long a request whose reply was lost may still take effect: slurmctld's MessageTimeout."""
_LONGEST_REASON: Final = 200


class WorkerView:
    """Polls one Slurm, during one term of leadership."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        name: str,
        clock: Clock,
        wake: Callable[[str], None],
        set_aside: Oddities,
    ) -> None:
        """Create it without reading anything. It wakes a NodeSet, by its key, when something that concerns it has changed."""
        self.slurm = slurm
        self._name = name
        self._set_aside = set_aside
        self._clock = clock
        self._wake = wake
        self._sure_from_s = clock.monotonic() + LOST_REPLY_S
        self._readings = WorkerReadings(lost_reply_s=LOST_REPLY_S)
        self._interests: dict[str, Interest] = {}
        self._listing: NodeListing | None = None
        self._last: WorkerReading | None = None
        self._has_jobs = False
        self._free_at: Mapping[SlurmNode, datetime | None] = {}
        self.trouble: str | None = None
        """Why the state of Slurm is unknown; "" if it is known, None before the first reading."""

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set."""
        with liveness.loop("readings of workers"):
            while not stop.is_set():
                if self._interests:
                    await self.read()
                liveness.turned(READ_EVERY_S)
                await pause(READ_EVERY_S, stop)

    # -- interests --------------------------------------------------------------------------------

    def follow(self, key: str, interest: Interest) -> None:
        """Register what a NodeSet needs to know from now on."""
        self._interests[key] = interest

    def forget(self, key: str) -> None:
        """Drop a NodeSet."""
        self._interests.pop(key, None)

    # -- results ----------------------------------------------------------------------------------

    def facts(self, nodes: Iterable[str]) -> SlurmFacts:
        """Return what the last reading says, and what is reliably known of these nodes now."""
        last = self._last
        if last is None:
            return SlurmFacts(trouble=self.trouble)
        return SlurmFacts(
            trouble=self.trouble,
            nodes=last.nodes,
            observations={node: self._readings.seen(node) for node in nodes}
            if self._is_sure
            else {},
            has_jobs=self._has_jobs,
            free_at=self._free_at,
        )

    def wrote(self, node: str, *, is_lost: bool) -> None:
        """Record a write to a node whose reply came, or was lost, just now."""
        self._readings.wrote(node, self._clock.monotonic(), is_lost=is_lost)

    # -- reading ----------------------------------------------------------------------------------

    async def read(self) -> None:
        """Read once, and wake the NodeSets that are concerned."""
        began_s = self._clock.monotonic()
        jobs = any(interest.jobs for interest in self._interests.values())
        try:
            # Counters may change although the list is unchanged: proof takes a new list.
            listing = await nodes.refresh_in_slices(self.slurm, None if jobs else self._listing)
            occupancy = await queue.read_occupancy(self.slurm) if jobs else None
        except SlurmError as error:
            _log.warning("workers.not_read", error=str(error))
            self._failed(str(error))
            return
        except Exception as error:  # noqa: BLE001  # an odd Slurm costs only its own NodeSets
            self._set_aside.crashed("object", self._name, error)
            why = faults.shortened(f"{type(error).__name__}: {error}", _LONGEST_REASON)
            self._failed(f"Slurm cannot be read: {why}")
            return
        self._set_aside.settled("object", self._name)
        by_name: Mapping[str, SlurmNodeFacts] = {node.name: node for node in listing.nodes}
        if self._last is not None and listing is self._listing:
            by_name = self._last.nodes
        trouble = occupancy.unreadable if occupancy else ""
        reading = WorkerReading(
            began_s=began_s,
            is_complete=not trouble,
            nodes=by_name,
            with_jobs=occupancy.by_node if occupancy else by_name,
        )
        self._readings.read(reading)
        self._free_at = occupancy.by_node if occupancy else {}
        self._has_jobs = jobs
        self._take(listing, reading, trouble=trouble)

    def _failed(self, trouble: str) -> None:
        self._readings.failed()
        self._take(None, None, trouble=trouble)

    def _take(
        self, listing: NodeListing | None, reading: WorkerReading | None, *, trouble: str
    ) -> None:
        before, was_sure = self._last, self._is_sure
        has_news = trouble != self.trouble
        self._listing, self._last, self.trouble = listing, reading, trouble
        has_news |= was_sure != self._is_sure
        changed = _changed(before, reading)
        for key, interest in list(self._interests.items()):
            if has_news or interest.jobs or interest.nodes & changed:
                self._wake(key)

    @property
    def _is_sure(self) -> bool:
        return self._last is not None and self._last.began_s >= self._sure_from_s


def _changed(before: WorkerReading | None, after: WorkerReading | None) -> frozenset[str]:
    old = before.nodes if before else {}
    new = after.nodes if after else {}
    if old is new:
        return frozenset()
    return frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
