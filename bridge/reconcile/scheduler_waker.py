"""Wake Slurm's scheduler when a job of ours may start (`slurm.kick`); the poll stays as the net.

A kick that is refused, lost or ignored costs time only: Slurm looks for work at its own intervals,
and the readings show what has started.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bridge.domain.observation import kicks
from bridge.domain.observation.kicks import KickTimes
from bridge.slurm.discovery import Discovery
from bridge.slurm.kick import EndedJob
from slurmclient.errors import SlurmError
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause

_log = structlog.get_logger(__name__)


class SchedulerWaker:
    """Decides when to kick, for the leader that places pods."""

    def __init__(
        self,
        *,
        kick: Callable[[EndedJob], Awaitable[None]],
        defers: Callable[[], Awaitable[bool]],
        discovery: Discovery,
        waits: Callable[[], bool],
        after: Callable[[], None],
        clock: Clock,
    ) -> None:
        """Wait for the first event.

        Args:
            kick: sends a kick.
            defers: asks whether kicks have no effect: `defer` is in Slurm's SchedulerParameters.
            waits: returns whether a job of ours waits.
            after: called after a kick: there may be news.
        """
        self._kick = kick
        self._defers = defers
        self._discovery = discovery
        self._waits = waits
        self._after = after
        self._clock = clock
        self._wanted = KickTimes()
        self._event = asyncio.Event()
        self._not_before = 0.0
        self._is_failing = False
        """Failures are logged once, until a kick has worked."""
        self._defers_known_until = 0.0

    def submitted(self) -> None:
        """Note that a job was submitted."""
        self._wanted = self._wanted.at(self._clock.monotonic())
        self._event.set()

    def completed(self) -> None:
        """Note that this process has reported an end to Slurm: there is room now."""
        self.submitted()

    def freed(self) -> None:
        """Note that a pod's containers have ended: the controllers are about to report it to Slurm."""
        now = self._clock.monotonic()
        self._wanted = self._wanted.at(now + kicks.AFTER_AN_END_S)
        self._wanted = self._wanted.again(now + kicks.AFTER_AN_END_AGAIN_S)
        self._event.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Kick whenever it is due, until `stop` is set."""
        await liveness.run("kicks", self._kick_forever(), stop)

    async def _kick_forever(self) -> None:
        while True:
            self._event.clear()
            if self._wanted.next_at is None:
                liveness.turned(rests_s=None)
                await self._event.wait()
                continue
            due_at = max(self._wanted.next_at, self._not_before)
            if (left_s := due_at - self._clock.monotonic()) > 0:
                liveness.turned(left_s)
                await pause(left_s, self._event)
                continue
            liveness.turned()
            self._wanted = self._wanted.after(self._clock.monotonic())
            job = self._discovery.last_ended
            if job is not None and self._waits():
                await self._kick_once(job)

    async def _kick_once(self, job: EndedJob) -> None:
        began, rests_s = self._clock.monotonic(), kicks.REST_S
        try:
            if await self._is_deferred():
                rests_s = kicks.ASK_AGAIN_S
            else:
                await self._kick(job)
                cycle_s = self._discovery.cycle_s
                rests_s = kicks.pause_s(cycle_s)
                await self._clock.sleep(kicks.settles_s(cycle_s))
                self._after()
                self._is_failing = False
        except (SlurmError, ValueError) as error:  # ValueError: an odd sluid
            if not self._is_failing:
                _log.warning("scheduler.kick_failed", job_id=job.id, error=str(error))
            self._is_failing = True
        self._not_before = began + rests_s

    async def _is_deferred(self) -> bool:
        """Ask now and then; the answer changes with slurm.conf only."""
        now = self._clock.monotonic()
        if now < self._defers_known_until:
            return False
        if await self._defers():
            _log.info("scheduler.defers", again_after_s=kicks.ASK_AGAIN_S)
            return True
        self._defers_known_until = now + kicks.ASK_AGAIN_S
        return False
