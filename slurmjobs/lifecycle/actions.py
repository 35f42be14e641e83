"""The actions that a decision may request for a SlurmJob; `slurmjobs.reconcile.actuator` carries them out."""

from dataclasses import dataclass
from datetime import timedelta

from bridge.domain.lifecycle.actions import Wait
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.values.ids import JobId, Sluid


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFinalizer:
    """Add our finalizer to the object, before any job of it can be in Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitBatch:
    """Submit its job; after a lost reply, look for it by its mark before submitting again."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelBatch:
    """Cancel one of its jobs; ids are reused, so the mark and the sluid are verified first."""

    job_id: JobId
    sluid: Sluid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Write the complete status, guarded by the version that the decision was based on."""

    status: SlurmJobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Delete the object, whose time to live is over; guarded by its uid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFinalizer:
    """Remove our finalizer: Slurm has no live job of this object any more."""


JobAction = AddFinalizer | SubmitBatch | CancelBatch | Report | Expire | RemoveFinalizer | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """What to do, in order; why, in one sentence; and when to reconcile again without an event."""

    actions: tuple[JobAction, ...]
    reason: str
    retry_after: timedelta | None = None
