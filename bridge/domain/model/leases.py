"""A lease as `coordination.k8s.io/v1` stores it: who leads, and since when."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """One Lease. The times are its writer's clock: compare them with each other, never with another machine's."""

    holder: str
    """`holderIdentity`; "" when it was released."""
    acquired_at: datetime
    renewed_at: datetime
    duration_s: int
    """Who did not see it renewed for so long, by his own clock, may take it."""
    transitions: int = 0
    """How often it has changed hands."""
    resource_version: str = ""
    """What the API server said when it was read; `replace` is refused when it has changed. "" before it is created."""
