"""What a leader makes of slurmctld's hints: it reads Slurm again, sooner than its next turn.

A placeholder counts as running only once the script that told of its start has ended. So its state
alone is read, a few times, and all of ours once it has left CONFIGURING.
"""

import asyncio
from collections.abc import Collection

from bridge.reconcile.placeholders import Placeholders
from bridge.slurm.listed import listing
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import SlurmError
from slurmruntime.values.ids import JobId

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.2
_GROWTH = 1.5
_FOLLOWED_S = 5.0
"""Then polling sees it."""

_MOST = 1000
"""Jobs followed at a time; of the others polling sees the start."""


class News:
    """One process's hints; without effect while it does not lead."""

    def __init__(self, slurm: SlurmClient, clock: Clock) -> None:
        self._slurm = slurm
        self._clock = clock
        self._views: list[Placeholders] = []
        self._starting: dict[JobId, float] = {}
        """Until when each is followed."""
        self._bell = asyncio.Event()

    def lead(self, placeholders: Placeholders) -> None:
        """From now on, let hints reach this view of Slurm, too."""
        self._views.append(placeholders)

    def started(self, job_id: JobId) -> None:
        """Follow a job while any of ours waits: it may be one that was submitted a moment ago."""
        waits = any(view.waits for view in self._views)
        if waits and len(self._starting) < _MOST:
            self._starting[job_id] = self._clock.monotonic() + _FOLLOWED_S
            self._bell.set()

    def ended(self, job_id: JobId) -> None:
        """Read Slurm soon if the job is ours."""
        for view in self._views:
            if view.job(job_id) is not None:
                view.soon()

    async def run(self, stop: asyncio.Event) -> None:
        """Follow jobs until told to stop."""
        await liveness.run("escrow", self._follow_forever(), stop)

    async def _follow_forever(self) -> None:
        while True:
            liveness.turned(None)
            await self._bell.wait()
            # Also when nobody is followed any more: waiting for a bell that rings gives way to nobody.
            self._bell.clear()
            pause_s = _FIRST_PAUSE_S
            while self._starting:
                self._bell.clear()
                liveness.turned(pause_s)
                await pause(pause_s, self._bell)
                if self._bell.is_set():  # another one: it is near, too
                    pause_s = _FIRST_PAUSE_S
                    await self._clock.sleep(_FIRST_PAUSE_S)
                pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
                await self._look(list(self._starting))

    async def _look(self, followed: Collection[JobId]) -> None:
        try:
            states = await listing.states(self._slurm, followed)
        except SlurmError:
            states = {}  # polling tells of the outage
        now = self._clock.monotonic()
        has_news = False
        for job_id in followed:
            found = states.get(job_id)
            if found is not None and "CONFIGURING" not in found:
                has_news = True
            elif now < self._starting[job_id]:
                continue
            del self._starting[job_id]
        for view in self._views if has_news else ():
            view.soon()
