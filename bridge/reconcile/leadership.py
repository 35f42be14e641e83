"""One term of leadership over pods: what the extender and the controllers put together in the same way."""

import asyncio
from collections.abc import Callable

from bridge.domain.ids import PodUid, WorkloadKey, alone_key
from bridge.domain.lifecycle.decision import Deadlines
from bridge.domain.oddities import About
from bridge.kube import events
from bridge.kube.events import Event, EventType
from bridge.leading.workqueue import WorkQueue
from bridge.reconcile import set_aside
from bridge.reconcile.actuator import Actuator, ResizeFor, RestoreFor, SubmitFor
from bridge.reconcile.informers import Mirror
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.program import Program
from bridge.reconcile.side import Side
from bridge.slurm.discovery import Discovery

_PATIENCE_S = 2.0
"""A placeholder that waits is none of the controllers' business yet."""

_SHORTEST_PAUSE_S = 0.05
_UNHURRIED_PAUSE_S = 0.2
"""Between two readings that are asked for: the extender's pods wait for their nodes, the controllers' to be released, many at
once."""


class Leadership:
    """A queue of pods, and a picture of Slurm that wakes them; dropped when the term ends."""

    def __init__(
        self, program: Program, mirror: Mirror, *, busy_s: float, idle_s: float, submits: bool
    ) -> None:
        """Put the queue and the picture together.

        Args:
            program: the process.
            mirror: what it keeps of Kubernetes.
            busy_s: how often Slurm is read while something waits.
            idle_s: how often it is read otherwise.
            submits: the pods are those that wait for a placeholder; else those that have one, which must end some time.
        """
        self._program = program
        self._mirror = mirror
        queue: WorkQueue[WorkloadKey] = WorkQueue(rng=program.rng)
        self._queue = queue
        self.discovery = Discovery(
            program.slurm,
            program.cluster,
            clock=program.clock.monotonic,
            patience_s=0.0 if submits else _PATIENCE_S,
            on_unreadable=lambda job, why: program.set_aside.tell("slurm_job", str(job), why),
            on_settled=lambda job: program.set_aside.settled("slurm_job", str(job)),
        )
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
        )
        self.wake: Callable[[PodUid], None] = lambda pod: queue.add(alone_key(pod))
        """Asks for a look at one pod; the loop finds the workload it is of."""
        program.health.register("slurm", self.placeholders.health)

    def loop(
        self,
        side: Side,
        policy: Deadlines,
        *,
        submit: SubmitFor,
        resize: ResizeFor,
        restore: RestoreFor,
    ) -> PodLoop:
        """Put the loop over one side's pods together."""
        program = self._program
        return PodLoop(
            side,
            pods=self._mirror.pods,
            queue=self._queue,
            placeholders=self.placeholders,
            actuator=Actuator(
                kube=program.kube,
                slurm=program.slurm,
                completer=program.completer,
                placeholders=self.placeholders,
                pods=self._mirror.pods,
                submit=submit,
                resize=resize,
                restore=restore,
                reporter=program.reporter,
                clock=program.clock,
                metrics=program.metrics,
            ),
            policy=policy,
            clock=program.clock,
            metrics=program.metrics,
            set_aside=program.set_aside,
        )

    async def run(self, loop: PodLoop, stop: asyncio.Event, *, workers: int) -> None:
        """Run the loop until told to stop, and tell people of what is set aside meanwhile."""
        program = self._program
        self._mirror.pods.subscribe(set_aside.odd_pods(program.set_aside, loop.actor))
        async with asyncio.TaskGroup() as group:
            group.create_task(program.set_aside.speak(self._say, stop))
            await loop.run(stop, workers=workers)

    async def _say(self, about: About, reason: str) -> None:
        event = Event(
            type=EventType.WARNING,
            action="SetAside",
            reason="OddObject",
            note=reason,
            at=self._program.clock.now(),
        )
        await events.create_event(self._program.kube, about, event, by=self._program.reporter)
