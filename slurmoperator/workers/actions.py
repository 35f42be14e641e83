"""What a decision may ask for about a worker."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorker:
    """Create its pod, protected from birth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectWorker:
    """Put the label on its pod by which evictions are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWorker:
    """Take that label off this very pod, in the version that was decided on: whoever drains its Kubernetes node may evict it."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWorker:
    """Delete this very pod, in the version that was decided on; it is protected from evictions until then."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWorker:
    """Let its jobs go on and start no others, with our mark in the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndrainWorker:
    """Lift our own drain."""


WorkerAction = (
    CreateWorker | ProtectWorker | ReleaseWorker | DeleteWorker | DrainWorker | UndrainWorker
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDecision:
    """What to do, in order; nothing means to wait."""

    actions: tuple[WorkerAction, ...] = ()
    reason: str
    """Why, in one sentence: for the log, the Event and the condition."""
    doubt: bool = False
    """It waits because something is not known: the NodeSet's condition says so."""
    retry_after: timedelta | None = None
