"""The true time limit of a placeholder, beside what Slurm is told so that containers may end in peace.

Slurm frees the node in the very moment a limit is reached, and nobody kills the pod: the next job would start among its
dying containers. So, shortly before, the job is *extended* (as root; its owner may only shorten it), its pod is evicted at
the true limit, and when its containers are gone the limit is set back and the job completed: TIMEOUT, with the limit it
always had. If we die on the way, Slurm ends the job when the extension is over.

What we added is recorded in the identity by the same request. A limit above the one we set is an administrator's, and
stands. One below it may be the job's owner's: it never moves the true limit up.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.model.jobs import SlurmJob

LEAD = timedelta(minutes=1)
"""So long before Slurm would end the job it is extended: enough for a new leader to come and do it."""

_MARGIN = timedelta(minutes=2)
"""Besides the pod's grace: Slurm counts in minutes, kubelets take their time, and leaders change."""

_LONGEST_GRACE = timedelta(days=365)
"""More is not added to a limit, whatever grace a pod has: Slurm keeps minutes in 32 bits, and people's tools print them."""

SETTLED = timedelta(seconds=2)
"""So long after the limit a completion surely counts as TIMEOUT: Slurm compares whole seconds, and clocks differ."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """One job's."""

    shown_min: int
    """As Slurm shows it, minutes."""
    true_min: int
    """Without what we added."""
    slurm_ends_at: datetime
    """When Slurm will end the job as things stand."""

    @property
    def is_extended(self) -> bool:
        """Slurm shows the limit that we set."""
        return self.shown_min != self.true_min

    @property
    def runs_out_at(self) -> datetime:
        """When the true limit is reached. Slurm moves the end with the limit, and by the time a job was suspended."""
        return self.slurm_ends_at - timedelta(minutes=self.shown_min - self.true_min)

    @property
    def extension_due_at(self) -> datetime:
        """From then on Slurm would end the job before long."""
        return self.slurm_ends_at - LEAD

    def extended_min(self, now: datetime, grace: timedelta) -> int:
        """The limit to set so that the pod can use its grace after the true limit, or from now if that has passed."""
        usable = min(grace, _LONGEST_GRACE)
        missing = max(self.runs_out_at, now) + usable + _MARGIN - self.slurm_ends_at
        return self.shown_min + max(1, math.ceil(missing / timedelta(minutes=1)))


def of(job: SlurmJob, overtime: timedelta) -> TimeLimit | None:
    """A started job's limit; None if it has none.

    overtime: Slurm's OverTimeLimit, for which pods may go on too.
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
