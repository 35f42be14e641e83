"""One term of leadership over pods, assembled the same way for the extender and the controllers.

A process leads one of the two sides, or both (`leader`).
"""

import asyncio
from collections.abc import Callable, Collection

from bridge.domain.lifecycle.decision import Actor, Deadlines
from bridge.reconcile import set_aside
from bridge.reconcile.actuator import Actuator, CpuTeller, DeviceGiver
from bridge.reconcile.informers import Mirror
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholder_writes import (
    PlaceholderWrites,
    ResizeFor,
    RestoreFor,
    SubmitFor,
)
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.program import Program
from bridge.reconcile.reading.readings import Readings
from bridge.reconcile.side import Side
from bridge.slurm.discovery import Discovery
from slurmruntime.kube import events
from slurmruntime.kube.events import Event, EventType
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values.ids import PodUid, WorkloadKey, alone_key
from slurmruntime.values.oddities import About

_PATIENCE_S = 2.0
"""How long a new job may be pending before the controllers look at it: they have no use for it
until it runs.
"""

_SHORTEST_PAUSE_S = 0.05
_UNHURRIED_PAUSE_S = 0.2
"""Minimum pause between two requested readings. The extender's pods wait for their nodes; the
controllers' pods wait to be released, many at once.
"""


def nothing() -> None:
    """Do nothing."""


class Common:
    """What a leader does once, for one side or for both: it reads Slurm, and says what is set aside."""

    def __init__(
        self,
        program: Program,
        mirror: Mirror,
        *,
        actors: Collection[Actor],
        patience_s: float = 0.0,
        batch: bool = False,
    ) -> None:
        """Begin with nothing read.

        Args:
            program: the process.
            mirror: its informers.
            actors: the sides it leads.
            patience_s: as for `Discovery`.
            batch: Read for the batch jobs of SlurmJobs, too.
        """
        self._program = program
        self._mirror = mirror
        self._actors = actors
        self.readings = Readings(
            Discovery(
                program.slurm,
                program.cluster,
                clock=program.clock.monotonic,
                patience_s=patience_s,
                batch=batch,
                named=lambda: filter(None, (pod.job_id for pod in mirror.pods.values())),
                on_unreadable=lambda job, why: program.set_aside.tell("slurm_job", str(job), why),
                on_settled=lambda job: program.set_aside.settled("slurm_job", str(job)),
            ),
            clock=program.clock,
            metrics=program.metrics,
        )
        program.health.register("slurm", self.readings.health)
        self._on_completed: Callable[[], None] = nothing

    def hear_completions(self, told: Callable[[], None]) -> None:
        """Have this called after each end that Slurm has taken from this process."""
        self._on_completed = told

    def completed(self) -> None:
        """Tell of an end that Slurm has taken."""
        self._on_completed()

    async def run(self, stop: asyncio.Event) -> None:
        """Send Events about objects that are set aside, until told to stop."""
        aside = self._program.set_aside
        self._mirror.pods.subscribe(set_aside.odd_pods(aside, self._actors))
        await aside.speak(self._say, stop)

    async def _say(self, about: About, reason: str) -> None:
        event = Event(
            type=EventType.WARNING,
            action="SetAside",
            reason="OddObject",
            note=reason,
            at=self._program.clock.now(),
        )
        await events.create_event(self._program.kube, about, event, by=self._program.reporter)


class Leadership:
    """A work queue of pods and a view of Slurm that feeds it; both are dropped when the term ends."""

    def __init__(
        self,
        program: Program,
        mirror: Mirror,
        *,
        busy_s: float,
        idle_s: float,
        submits: bool,
        batch: bool = False,
        common: Common | None = None,
    ) -> None:
        """Create the queue and the view.

        Args:
            program: the process.
            mirror: its informers.
            busy_s: the interval between readings of Slurm while something waits.
            idle_s: the interval otherwise.
            submits: True if the pods wait for a placeholder; False if they have one, which must end
                some day.
            batch: Read for the batch jobs of SlurmJobs, too.
            common: of a process that leads both sides; it runs that itself. None: of this side only.
        """
        self.program = program
        self.mirror = mirror
        queue: WorkQueue[WorkloadKey] = WorkQueue(rng=program.rng)
        self._queue = queue
        own = None
        if common is None:
            own = common = Common(
                program,
                mirror,
                actors={Actor.EXTENDER if submits else Actor.CONTROLLERS},
                patience_s=0.0 if submits else _PATIENCE_S,
                batch=batch,
            )
        self._own = own
        self.common = common
        """What the other side of this process has a part in, too, if it leads both."""
        self.discovery = common.readings.discovery
        self.placeholders = Placeholders(
            self.discovery,
            pace=program.pace(
                busy_s=busy_s,
                idle_s=idle_s,
                shortest_s=_SHORTEST_PAUSE_S if submits else _UNHURRIED_PAUSE_S,
                limits=not submits,
            ),
            clock=program.clock,
            metrics=program.metrics,
            readings=common.readings,
        )
        self.wake: Callable[[PodUid], None] = lambda pod: queue.add_afresh(alone_key(pod))
        """Requests a look at one pod that there is news of; the loop finds its workload."""

    def loop(
        self,
        side: Side,
        policy: Deadlines,
        *,
        submit: SubmitFor,
        resize: ResizeFor,
        restore: RestoreFor,
        devices: DeviceGiver | None = None,
        cpus: CpuTeller | None = None,
    ) -> PodLoop:
        """Create the loop over one side's pods."""
        program = self.program
        return PodLoop(
            side,
            pods=self.mirror.pods,
            queue=self._queue,
            placeholders=self.placeholders,
            actuator=Actuator(
                kube=program.kube,
                in_slurm=PlaceholderWrites(
                    kube=program.kube,
                    slurm=program.slurm,
                    completer=program.completer,
                    placeholders=self.placeholders,
                    submit=submit,
                    resize=resize,
                    restore=restore,
                    on_completed=self.common.completed,
                ),
                placeholders=self.placeholders,
                pods=self.mirror.pods,
                reporter=program.reporter,
                clock=program.clock,
                metrics=program.metrics,
                devices=devices,
                cpus=cpus,
            ),
            policy=policy,
            clock=program.clock,
            metrics=program.metrics,
            set_aside=program.set_aside,
        )

    async def run(self, loop: PodLoop, stop: asyncio.Event, *, workers: int) -> None:
        """Run the loop until told to stop, and what it has in common with no other side."""
        async with asyncio.TaskGroup() as group:
            if self._own:
                group.create_task(self._own.run(stop))
            await loop.run(stop, workers=workers)
