"""One term of leadership over pods, for the extender, the controllers or both (`leader`)."""

import asyncio
from collections.abc import Callable, Collection

from bridge.domain.lifecycle.decision import Actor
from bridge.domain.observation.pace import Pace
from bridge.reconcile import set_aside
from bridge.reconcile.actuator import Actuator, CpuLookup, DeviceGiver
from bridge.reconcile.informers import Mirror
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholder_writes import (
    PlaceholderSubmitter,
    PlaceholderWrites,
    RestoreFor,
)
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.program import Program
from bridge.reconcile.reading.readings import Readings
from bridge.reconcile.side import Side
from bridge.slurm.discovery import Discovery
from slurmclient.watching import unread
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values.ids import PodUid, WorkloadKey, alone_key

_PATIENT_PACE = unread.Pace(patience_s=2.0)
"""How long a new job may be pending before the controllers read it: they do not need it until it runs."""

PLACING = Pace(busy_s=0.5, idle_s=2, shortest_s=0.05)
"""The extender's pods wait for their nodes, so it reads twice a second while something happens."""
RUNNING = Pace(busy_s=1, idle_s=1, shortest_s=0.2, limits=True)
"""The controllers' pods wait to be released, many at once; a second more on a node costs little."""


class LeaderReadings:
    """What a leader does once, whether it leads one side or both: reading Slurm, and reporting what is set aside."""

    def __init__(
        self,
        program: Program,
        mirror: Mirror,
        *,
        actors: Collection[Actor],
        pace: unread.Pace = unread.USUAL_PACE,
        batch: bool = False,
    ) -> None:
        """Register the reading of Slurm in the program's health.

        Args:
            actors: the sides it leads.
            pace: as for `Discovery`.
            batch: also read for the batch jobs of SlurmJobs.
        """
        self._program = program
        self._mirror = mirror
        self._actors = actors
        self.readings = Readings(
            Discovery(
                program.slurm,
                program.cluster,
                clock=program.clock.monotonic,
                pace=pace,
                batch=batch,
                named=lambda: filter(None, (pod.job_id for pod in mirror.pods.values())),
                on_unreadable=lambda job, why: program.set_aside.tell("slurm_job", str(job), why),
                on_settled=lambda job: program.set_aside.settled("slurm_job", str(job)),
            ),
            clock=program.clock,
            metrics=program.metrics,
        )
        program.health.register("slurm", self.readings.health)
        self._on_completed: Callable[[], None] | None = None

    def on_completion(self, callback: Callable[[], None]) -> None:
        """Call this back after every end that Slurm has accepted from this process."""
        self._on_completed = callback

    def completed(self) -> None:
        """Note that Slurm has accepted an end."""
        if self._on_completed is not None:
            self._on_completed()

    async def run(self, stop: asyncio.Event) -> None:
        """Send Events about objects that are set aside, until `stop` is set."""
        aside = self._program.set_aside
        self._mirror.pods.subscribe(set_aside.odd_pods(aside, self._actors))
        await aside.report(self._program.events, stop)


class Leadership:
    """A work queue of pods and a view of Slurm that feeds it; both are dropped when the term ends."""

    def __init__(
        self,
        program: Program,
        mirror: Mirror,
        *,
        submits: bool,
        batch: bool = False,
        shared: LeaderReadings | None = None,
    ) -> None:
        """Create the queue and the view.

        Args:
            submits: True if the pods wait for a placeholder; False if they have one, which must end
                eventually.
            batch: also read for the batch jobs of SlurmJobs.
            shared: readings shared with the other side, by a process that leads both and runs them
                itself; None if this process leads one side.
        """
        self.program = program
        self.mirror = mirror
        queue: WorkQueue[WorkloadKey] = WorkQueue(rng=program.rng)
        self._queue = queue
        own = None
        if shared is None:
            own = shared = LeaderReadings(
                program,
                mirror,
                actors={Actor.EXTENDER if submits else Actor.CONTROLLERS},
                pace=unread.USUAL_PACE if submits else _PATIENT_PACE,
                batch=batch,
            )
        self._own = own
        self.shared = shared
        """Shared with the other side if this process leads both."""
        self.discovery = shared.readings.discovery
        self.placeholders = Placeholders(
            self.discovery,
            pace=PLACING if submits else RUNNING,
            clock=program.clock,
            metrics=program.metrics,
            readings=shared.readings,
        )
        self.wake: Callable[[PodUid], None] = lambda pod: queue.add_afresh(alone_key(pod))
        """Requeues one pod that there is news of; the loop finds its workload."""

    def loop(
        self,
        side: Side,
        *,
        submitter: PlaceholderSubmitter | None = None,
        restore: RestoreFor | None = None,
        devices: DeviceGiver | None = None,
        cpus: CpuLookup | None = None,
    ) -> PodLoop:
        """Create the loop over one side's pods."""
        program = self.program
        return PodLoop(
            side,
            pods=self.mirror.pods,
            queue=self._queue,
            placeholders=self.placeholders,
            actuator=Actuator(
                PlaceholderWrites(
                    kube=program.kube,
                    slurm=program.slurm,
                    completer=program.completer,
                    placeholders=self.placeholders,
                    on_completed=self.shared.completed,
                    submitter=submitter,
                    restore=restore,
                ),
                pods=self.mirror.pods,
                process=program.process,
                devices=devices,
                cpus=cpus,
            ),
            process=program.process,
        )

    async def run(self, loop: PodLoop, stop: asyncio.Event) -> None:
        """Run the loop until `stop` is set, and the readings unless another side shares them."""
        async with asyncio.TaskGroup() as group:
            if self._own:
                group.create_task(self._own.run(stop))
            await loop.run(stop)
