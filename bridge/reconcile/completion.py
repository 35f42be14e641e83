"""Tells Slurm how pods ended; and what is second best where slurmctld's own port is out of reach.

slurmrestd can only cancel. Where a firewall, or a wrong setting, stands between us and slurmctld's port for long, pods
must not stay for ever: their placeholders are cancelled, and how they ended is left in the identity for whoever reads it.
"""

from dataclasses import replace

import structlog

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import SlurmJob
from bridge.process.clock import Clock
from bridge.slurm import complete, jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.complete import Controller
from bridge.slurm.errors import Unavailable

_log = structlog.get_logger(__name__)

PATIENCE_S = 30.0
"""For so long an unreachable port is tried again before anything is cancelled: a restart of slurmctld is over by then."""

FORGOTTEN_S = 150.0
"""A failure that so long no other followed (retries come at least once a minute) belongs to an outage that is over."""


class Completer:
    """One leader's way to end placeholders with an outcome."""

    def __init__(self, slurm: SlurmClient, controller: Controller, clock: Clock) -> None:
        self._slurm = slurm
        self._controller = controller
        self._clock = clock
        self._silence = Silence()

    async def complete(self, job: SlurmJob, how: Outcome) -> None:
        """End a placeholder with its pod's outcome, or cancel it if that has not been possible for long.

        Raises:
            SlurmError: try again later.
        """
        try:
            await complete.complete(self._slurm, self._controller, job.id, how, sluid=job.sluid)
        except Unavailable as error:
            if not self._silence.is_hopeless(self._clock.monotonic()):
                raise
            words = outcome.in_words(how)
            _log.warning("completion.unreachable", job_id=job.id, ended=words, error=str(error))
            marked = replace(job.identity, ended=words)
            await jobs.set_identity(self._slurm, job.id, marked, sluid=job.sluid)
            await jobs.cancel(self._slurm, job.sluid or job.id)
        else:
            self._silence.ends()


class Silence:
    """How long slurmctld's port has been out of reach; moments are monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._failed_at = 0.0

    def is_hopeless(self, now: float) -> bool:
        """Note a failure, and say whether no outcome could be told for long."""
        if self._since is None or now - self._failed_at > FORGOTTEN_S:
            self._since = now
        self._failed_at = now
        return now - self._since >= PATIENCE_S

    def ends(self) -> None:
        """Note an answer."""
        self._since = None
