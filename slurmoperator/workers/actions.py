"""The actions that a decision about a worker may ask for."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorker:
    """Create its pod, protected from birth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectWorker:
    """Add the label to its pod that makes evictions be refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWorker:
    """Remove that label from exactly this pod and version, so that `kubectl drain` may evict it."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWorker:
    """Delete exactly this pod and version; until then it is protected from evictions."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWorker:
    """Let running jobs finish and start no others, with our mark in the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndrainWorker:
    """Lift our own drain."""


WorkerAction = (
    CreateWorker | ProtectWorker | ReleaseWorker | DeleteWorker | DrainWorker | UndrainWorker
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDecision:
    """The actions to take, in order; none means to wait."""

    actions: tuple[WorkerAction, ...] = ()
    reason: str
    """Why, in one sentence: for the log, the Event and the condition."""
    retry_after: timedelta | None = None
