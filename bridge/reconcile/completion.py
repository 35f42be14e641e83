"""Report to Slurm how pods ended, with a fallback for when slurmctld's own port cannot be reached.

slurmrestd can only cancel. If a firewall or a wrong setting blocks slurmctld's port for long, pods
must not stay forever: their placeholders are cancelled, and the outcome stays in the identity.
"""

from dataclasses import replace
from functools import partial

import structlog

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import SlurmJob
from bridge.slurm import complete, jobs
from bridge.slurm.complete import ControllerHosts
from slurmclient.errors import LostReply, Unavailable
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient

_log = structlog.get_logger(__name__)

PATIENCE_S = 30.0
"""Retry an unreachable port for this long before cancelling anything: a restart of slurmctld is
over by then.
"""

TAKEOVER_S = 300.0
"""Wait for this long if a slurmctld can be reached but is not in charge: a backup takes over after
SlurmctldTimeout, two minutes by default. Until then it says so, or takes messages and is silent.
"""

FORGOTTEN_S = 150.0
"""After this long without another failure, the outage counts as over (retries come at least once a
minute).
"""


class Completer:
    """Ends placeholders with an outcome, for one leader."""

    def __init__(self, slurm: SlurmClient, controllers: ControllerHosts, clock: Clock) -> None:
        self._slurm = slurm
        self._controllers = controllers
        self._clock = clock
        self._outage = Outage()

    async def complete(self, job: SlurmJob, how: Outcome) -> None:
        """End a placeholder with its pod's outcome, or cancel it if that stays impossible.

        Raises SlurmError if it should be tried again later.
        """
        try:
            await complete.complete(self._slurm, self._controllers, job.id, how, sluid=job.sluid)
        except Unavailable as error:
            reached = isinstance(error, LostReply)
            if not self._outage.is_hopeless(self._clock.monotonic(), reached=reached):
                raise
            words = outcome.in_words(how)
            _log.warning("completion.unreachable", job_id=job.id, ended=words, error=str(error))
            await jobs.cancel_for(self._slurm, job, partial(replace, ended=words))
        else:
            self._outage.ends()


class Outage:
    """Tracks how long slurmctld's port has been unreachable; moments are monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._reached_at = 0.0
        """When a host could last be reached, even if it was not in charge."""
        self._failed_at = 0.0

    def is_hopeless(self, now: float, *, reached: bool = False) -> bool:
        """Note a failure; return True if outcomes have not been deliverable for too long."""
        if self._since is None or now - self._failed_at > FORGOTTEN_S:
            self._since = self._reached_at = now
        self._failed_at = now
        if reached:
            self._reached_at = now
            return now - self._since >= TAKEOVER_S
        return now - self._reached_at >= PATIENCE_S

    def ends(self) -> None:
        """Note a successful call."""
        self._since = None
