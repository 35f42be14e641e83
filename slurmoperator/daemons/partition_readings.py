"""What Slurm has of the partitions that are to go: read beside the loop, so that a Slurm which does not answer holds up nobody else."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bridge.slurm import inspection, nodes, queue
from slurmoperator.configuration.partitions import (
    MOST_JOBS,
    NOT_READ,
    JobsOfPartition,
    SeenPartitions,
)
from slurmoperator.nodesets.views import OpensSlurm
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError

_AT_A_TIME: Final = 8
_SOONEST_S: Final = 5.0
"""Between two readings of one Slurm: long enough for what was decided by the first one to be written."""
_LATEST_S: Final = 30.0
"""Between two readings that show the same: each is a list of all jobs."""
_FRESH_S: Final = 10.0
"""How old a reading may be by which something is decided that must not be wrong."""
_LONGEST_REASON: Final = 200
_CLOSED: Final = frozenset({"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING"})
"""States of nodes on which no job begins: Slurm remembers workers that have gone."""


@dataclass(slots=True)
class _Followed:
    """A Slurm that was asked for."""

    names: frozenset[str] = frozenset()
    seen: SeenPartitions = NOT_READ
    pause_s: float = 0.0
    """Before the next reading."""
    is_new: bool = False
    """Nobody has decided by it yet."""
    read_at_s: float = 0.0
    is_awaited: bool = False


class PartitionReadings:
    """Readings of all Slurms, during one term of leadership."""

    def __init__(self, opens: OpensSlurm, *, clock: Clock, wake: Callable[[str], None]) -> None:
        """Prepare it; nothing is read.

        Args:
            opens: opens a client.
            clock: of the process.
            wake: called with the uid of a Controller that has news.
        """
        self._opens = opens
        self._clock = clock
        self._wake = wake
        self._followed: dict[str, _Followed] = {}
        self._asked: asyncio.Queue[ObjectMetadata] = asyncio.Queue()
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    def latest(self, controller: ObjectMetadata, names: frozenset[str]) -> SeenPartitions:
        """Return what a Controller's Slurm has of some partitions, and have it read again.

        What was returned before is not sure any more: something may have been written since.
        """
        found = self._followed.setdefault(controller.uid, _Followed())
        if found.names != names:
            found.names, found.seen, found.pause_s = names, NOT_READ, 0.0
            found.is_new = False
        if not found.is_awaited:
            found.is_awaited = True
            self._asked.put_nowait(controller)
        # Who was woken by it may not have wanted it any more.
        is_fresh = found.is_new and self._clock.monotonic() - found.read_at_s <= _FRESH_S
        found.is_new = False
        return found.seen if is_fresh else found.seen.unsure()

    async def run(self, stop: asyncio.Event) -> None:
        """Read what is asked for until told to stop."""
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(stop.wait())
            reading: set[asyncio.Task[None]] = set()
            while not stop.is_set():
                asked = group.create_task(self._asked.get())
                await asyncio.wait((asked, ending), return_when=asyncio.FIRST_COMPLETED)
                if asked.done():
                    task = group.create_task(self._read(asked.result()))
                    reading.add(task)
                    task.add_done_callback(reading.discard)
                else:
                    asked.cancel()
            for task in reading:
                task.cancel()

    async def _read(self, controller: ObjectMetadata) -> None:
        found = self._followed[controller.uid]
        await self._clock.sleep(found.pause_s)
        names = found.names
        async with self._slots:
            began_s = self._clock.monotonic()
            try:
                async with self._opens(controller.full_name) as slurm:
                    seen = await _seen(slurm, names)
            except Exception as error:  # noqa: BLE001  # an odd Slurm costs only its own partitions
                kind = "" if isinstance(error, PeerError) else f"{type(error).__name__}: "
                seen = SeenPartitions(trouble=faults.shortened(f"{kind}{error}", _LONGEST_REASON))
        found.is_awaited = False
        if names == found.names:
            is_same = seen == found.seen
            found.pause_s = min(max(2 * found.pause_s, _SOONEST_S), _LATEST_S)
            if not is_same:
                found.pause_s = _SOONEST_S
            found.seen, found.is_new, found.read_at_s = seen, True, began_s
        self._wake(controller.uid)


async def _seen(slurm: SlurmClient, names: frozenset[str]) -> SeenPartitions:
    """Read the partitions before the jobs: one that is closed then takes no more."""
    shown = await inspection.partitions(slurm)
    jobs = await queue.live(slurm)
    if jobs.unreadable:
        return SeenPartitions(trouble=jobs.unreadable)
    found: dict[str, JobsOfPartition] = {}
    for name in sorted(names):
        mine = [each for each in jobs.live if name in each.partitions]
        running = [str(each.id) for each in mine if not each.waits]
        waiting = [str(each.id) for each in mine if each.waits]
        found[name] = JobsOfPartition(
            running=len(running),
            waiting=len(waiting),
            first_running=tuple(running[:MOST_JOBS]),
            first_waiting=tuple(waiting[:MOST_JOBS]),
        )
    return SeenPartitions(
        states={each.name: each.state for each in shown if each.name in names},
        jobs=found,
        live=len(jobs.live),
        open_nodes=0 if jobs.live else await _open_nodes(slurm),
    )


async def _open_nodes(slurm: SlurmClient) -> int:
    listed = await nodes.renewed_in_slices(slurm, None)
    return sum(not node.states & _CLOSED for node in listed.nodes)
