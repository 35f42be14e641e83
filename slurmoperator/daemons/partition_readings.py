"""Reads from Slurm the partitions that are to be removed: beside the loop, so that a Slurm that does not answer delays no other."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bridge.slurm import nodes, queue
from slurmoperator.configuration.partitions import (
    NOT_READ,
    JobsOfPartition,
    PartitionReading,
    SlurmPartitions,
)
from slurmoperator.nodesets.views import OpensSlurm
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.process.clock import Clock
from slurmruntime.slurm import inspection
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import faults
from slurmruntime.values.errors import PeerError

_MOST_AT_ONCE: Final = 8
_MOST_OF_NAMESPACE: Final = 2
"""A Slurm that does not answer holds its place for minutes, and anybody may have many such Slurms in a namespace."""
_SHORTEST_PAUSE_S: Final = 5.0
"""Between two readings of one Slurm: long enough to write what was decided by the first one."""
_LONGEST_PAUSE_S: Final = 30.0
"""Between two readings that show the same. Each lists all jobs."""
_FRESH_S: Final = 10.0
"""How old a reading may be for a decision that must not be wrong."""
_LONGEST_REASON: Final = 200
_CLOSED: Final = frozenset({"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING"})
"""States of nodes on which no job starts: Slurm remembers workers that are gone."""


@dataclass(slots=True)
class _Poll:
    """The last reading of one Slurm, and when the next one is due."""

    names: frozenset[str] = frozenset()
    seen: SlurmPartitions = NOT_READ
    pause_s: float = 0.0
    """Before the next reading."""
    is_new: bool = False
    """Whether no decision has used it yet."""
    read_at_s: float = 0.0
    is_requested: bool = False


class PartitionReadings:
    """Readings of all Slurms during one term of leadership."""

    def __init__(self, opens: OpensSlurm, *, clock: Clock, wake: Callable[[str], None]) -> None:
        """Prepare; nothing is read yet. Each reading wakes its Controller, by the uid."""
        self._opens = opens
        self._clock = clock
        self._wake = wake
        self._polls: dict[str, _Poll] = {}
        self._requests: asyncio.Queue[ObjectMetadata] = asyncio.Queue()
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._slots_of = defaultdict[str, asyncio.Semaphore](
            lambda: asyncio.Semaphore(_MOST_OF_NAMESPACE)
        )
        """By namespace."""

    def last(self, uid: str) -> PartitionReading:
        """Return the last reading of a Controller's Slurm; sure only until another is requested, as something may be written then that changes Slurm."""
        poll = self._polls.get(uid, _Poll())
        # The reconcile that it woke may not have used it, so it can be new and old.
        is_fresh = poll.is_new and self._clock.monotonic() - poll.read_at_s <= _FRESH_S
        return PartitionReading(
            names=poll.names, seen=poll.seen if is_fresh else poll.seen.unsure()
        )

    def request(self, controller: ObjectMetadata, names: frozenset[str]) -> None:
        """Request another reading, of these partitions."""
        poll = self._polls.setdefault(controller.uid, _Poll())
        if poll.names != names:
            poll.names, poll.seen, poll.pause_s = names, NOT_READ, 0.0
        poll.is_new = False
        if not poll.is_requested:
            poll.is_requested = True
            self._requests.put_nowait(controller)

    async def run(self, stop: asyncio.Event) -> None:
        """Read what is requested until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(stop.wait())
            reading: set[asyncio.Task[None]] = set()
            while not stop.is_set():
                request = group.create_task(self._requests.get())
                await asyncio.wait((request, ending), return_when=asyncio.FIRST_COMPLETED)
                if request.done():
                    task = group.create_task(self._read(request.result()))
                    reading.add(task)
                    task.add_done_callback(reading.discard)
                else:
                    request.cancel()
            for task in reading:
                task.cancel()

    async def _read(self, controller: ObjectMetadata) -> None:
        poll = self._polls[controller.uid]
        await self._clock.sleep(poll.pause_s)
        names = poll.names
        async with self._slots_of[controller.namespace], self._slots:
            began_s = self._clock.monotonic()
            try:
                async with self._opens(controller.full_name) as slurm:
                    seen = await _read_partitions(slurm, names)
            except Exception as error:  # noqa: BLE001  # a broken Slurm affects only its own partitions
                kind = "" if isinstance(error, PeerError) else f"{type(error).__name__}: "
                seen = SlurmPartitions(trouble=faults.shortened(f"{kind}{error}", _LONGEST_REASON))
        poll.is_requested = False
        if names == poll.names:
            is_same = seen == poll.seen
            poll.pause_s = min(max(2 * poll.pause_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
            if not is_same:
                poll.pause_s = _SHORTEST_PAUSE_S
            poll.seen, poll.is_new, poll.read_at_s = seen, True, began_s
        self._wake(controller.uid)


async def _read_partitions(slurm: SlurmClient, names: frozenset[str]) -> SlurmPartitions:
    """Read the partitions before the jobs: a partition that was closed by then takes no more."""
    listed = await inspection.partitions(slurm)
    jobs = await queue.list_live(slurm)
    if jobs.unreadable:
        return SlurmPartitions(trouble=jobs.unreadable)
    jobs_of: dict[str, JobsOfPartition] = {}
    for name in sorted(names):
        in_partition = [job for job in jobs.live if name in job.partitions]
        jobs_of[name] = JobsOfPartition(
            running=tuple(str(job.id) for job in in_partition if not job.waits),
            waiting=tuple(str(job.id) for job in in_partition if job.waits),
        )
    open_nodes = 0
    if not jobs.live:
        all_nodes = (await nodes.refresh_in_slices(slurm, None)).nodes
        open_nodes = sum(not node.states & _CLOSED for node in all_nodes)
    return SlurmPartitions(
        states={partition.name: partition.state for partition in listed if partition.name in names},
        jobs=jobs_of,
        live=len(jobs.live),
        open_nodes=open_nodes,
    )
