"""A placeholder's true time limit, beside the one set in Slurm to let containers end in peace.

Slurm frees the node the very moment a limit is reached, and nothing kills the pod: the next job
would start among its dying containers. So, shortly before, the job is *extended* (as root; its
owner may only shorten it), its pod is evicted at the true limit, and when its containers are gone
the limit is reset and the job completed: TIMEOUT, with the limit it always had. If we die on the
way, Slurm ends the job when the extension is over.

What we added is recorded in the identity by the same request. A limit above the one we set is an
administrator's, and stands. One below it may be the job owner's: it never moves the true limit up.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.model.jobs import SlurmJob

LEAD = timedelta(minutes=1)
"""How long before Slurm would end the job it is extended: enough for a new leader to step in and do
it."""

_MARGIN = timedelta(minutes=2)
"""Added to the pod's grace: Slurm counts minutes, kubelets take their time, leaders change."""

SETTLED = timedelta(seconds=2)
"""How long after the limit a completion surely counts as TIMEOUT: Slurm compares whole seconds, and
clocks differ."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """One job's time limit."""

    shown_min: int
    """As Slurm shows it, in minutes: with our extension, if there is one."""
    true_min: int
    """Without our extension."""
    slurm_ends_at: datetime
    """When Slurm would end the job as things stand."""

    @property
    def is_extended(self) -> bool:
        """True if Slurm shows the limit that we set."""
        return self.shown_min != self.true_min

    @property
    def runs_out_at(self) -> datetime:
        """When the true limit is reached.

        Slurm moves the end with the limit, and by the time for which a job was suspended.
        """
        return self.slurm_ends_at - timedelta(minutes=self.shown_min - self.true_min)

    @property
    def extension_due_at(self) -> datetime:
        """When to extend the job: Slurm would end it soon after."""
        return self.slurm_ends_at - LEAD

    def extended_min(self, now: datetime, grace: timedelta) -> int:
        """Return the limit that leaves the pod its grace after the later of true limit and now.

        The grace is bounded (`graces.usable`): Slurm keeps minutes in 32 bits.
        """
        missing = max(self.runs_out_at, now) + grace + _MARGIN - self.slurm_ends_at
        return self.shown_min + max(1, math.ceil(missing / timedelta(minutes=1)))


def of(job: SlurmJob, overtime: timedelta) -> TimeLimit | None:
    """Return a started job's limit; None if it has none.

    overtime: Slurm's OverTimeLimit, which pods may use too.
    """
    if job.time_limit_min is None or job.ends_at is None:
        return None
    true_min = _true_min(job.time_limit_min, job.identity.limit_min, job.identity.extended_min)
    return TimeLimit(job.time_limit_min, true_min, job.ends_at + overtime)


def _true_min(shown_min: int, limit_min: int | None, extended_min: int | None) -> int:
    """Return the limit without what we added.

    A job's owner may shorten it while it runs, but never lengthen it. So a limit between the true one and the one we
    set is the owner's and gains nothing, a shorter one holds, and only a longer one is an administrator's.
    """
    if limit_min is None or extended_min is None or shown_min > extended_min:
        return shown_min
    return min(shown_min, limit_min)
