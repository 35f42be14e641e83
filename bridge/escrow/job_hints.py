"""Make a leader read Slurm earlier when slurmctld's scripts report a job.

A placeholder counts as running only once the script that reported its start has ended. So only its state
is read, a few times, and all our jobs once it has left CONFIGURING.
"""

import asyncio
from collections.abc import Collection

from bridge.reconcile.placeholders import Placeholders
from slurmclient.errors import SlurmError
from slurmclient.watching import listing
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.2
_GROWTH = 1.5
_FOLLOWED_S = 5.0
"""After that, polling sees the start."""

_MOST = 1000
"""Jobs followed at a time; polling sees the start of the others."""


class JobHints:
    """The hints that one process receives; without effect while it does not lead."""

    def __init__(self, slurm: SlurmClient, clock: Clock) -> None:
        self._slurm = slurm
        self._clock = clock
        self._views: list[Placeholders] = []
        self._starting: dict[JobId, float] = {}
        """Until when a job is followed, by its id; monotonic seconds."""
        self._event = asyncio.Event()

    def lead(self, placeholders: Placeholders) -> None:
        """Pass hints on to this view of Slurm, too, from now on."""
        self._views.append(placeholders)

    def started(self, job_id: JobId) -> None:
        """Follow a job if any of ours waits: it may be one that was submitted a moment ago."""
        waits = any(view.waits for view in self._views)
        if waits and len(self._starting) < _MOST:
            self._starting[job_id] = self._clock.monotonic() + _FOLLOWED_S
            self._event.set()

    def ended(self, job_id: JobId) -> None:
        """Read Slurm soon if the job is ours."""
        for view in self._views:
            if view.job(job_id) is not None:
                view.ask()

    async def run(self, stop: asyncio.Event) -> None:
        """Follow jobs until `stop` is set."""
        await liveness.run("escrow", self._follow_forever(), stop)

    async def _follow_forever(self) -> None:
        while True:
            liveness.turned(None)
            await self._event.wait()
            # Clear it even if no job is followed any more: awaiting an event that is set never yields to other tasks.
            self._event.clear()
            pause_s = _FIRST_PAUSE_S
            while self._starting:
                self._event.clear()
                liveness.turned(pause_s)
                await pause(pause_s, self._event)
                if self._event.is_set():  # another job, which is about to start, too
                    pause_s = _FIRST_PAUSE_S
                    await self._clock.sleep(_FIRST_PAUSE_S)
                pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
                await self._check(list(self._starting))

    async def _check(self, followed: Collection[JobId]) -> None:
        try:
            states = await listing.states(self._slurm, followed)
        except SlurmError:
            states = {}  # polling reports the outage
        now = self._clock.monotonic()
        has_news = False
        for job_id in followed:
            state = states.get(job_id)
            if state is not None and "CONFIGURING" not in state:
                has_news = True
            elif now < self._starting[job_id]:
                continue
            del self._starting[job_id]
        for view in self._views if has_news else ():
            view.ask()
