"""What a decision may request for a SlurmJob; `slurmjobs.reconcile.actuator` carries it out."""

from dataclasses import dataclass
from datetime import timedelta

from bridge.domain.lifecycle.actions import Wait
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.values.ids import JobId, Sluid


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOn:
    """Put our finalizer on the object, before anything of it may be in Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitBatch:
    """Submit its job; after a lost reply, look for it by its mark before any repetition."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelBatch:
    """Cancel one of its jobs; ids are reused, so the mark and the sluid are verified first."""

    job_id: JobId
    sluid: Sluid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Write the whole status, guarded by the version that was decided on."""

    status: SlurmJobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Delete the object, which ended long enough ago; guarded by its uid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBack:
    """Remove our finalizer: nothing of this object is left in Slurm."""


JobAction = TakeOn | SubmitBatch | CancelBatch | Report | Expire | GiveBack | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """What to do, in order, why in one sentence, and when to look again without an event."""

    actions: tuple[JobAction, ...]
    reason: str
    retry_after: timedelta | None = None
