"""A lease as `coordination.k8s.io/v1` stores it: who leads, and since when."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """One Lease. Its times are the writer's clock: never compare them with another machine's."""

    holder: str
    """`holderIdentity`; "" when it was released."""
    acquired_at: datetime
    renewed_at: datetime
    duration_s: int
    """A contender that has not seen a renewal for this long, by its own clock, may take the
    lease."""
    transitions: int = 0
    """How often it has changed hands."""
    resource_version: str = ""
    """As read from the API server; `replace` is refused if it has changed since. "" before it is
    created."""
