"""What whoever meets an object that cannot be handled says about it; `bridge.reconcile.set_aside` listens."""

from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["pod", "other_pod", "node", "object", "workload", "slurm_node", "slurm_job"]
"""What is set aside, as logs and metrics call it.

A pod of ours, another one that has a node, a node, any other object of Kubernetes; a key of the loop over pods, or of the one
over nodes; a job as Slurm lists it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """An object of Kubernetes' `v1` that can carry an Event."""

    kind: str
    """`Pod` or `Node`."""
    namespace: str = ""
    name: str
    uid: str

    @property
    def full_name(self) -> str:
        """`namespace/name`, or the name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Oddities(Protocol):
    """Where one odd object is set aside, so that it costs only itself."""

    def tell(self, kind: Kind, name: str, reason: str, *, about: About | None = None) -> None:
        """Set an object aside for what it is; said as often as anybody likes, told once."""
        ...

    def crashed(
        self, kind: Kind, name: str, error: Exception, *, about: About | None = None
    ) -> None:
        """Set an object aside that we failed on: an error of ours, to be reported."""
        ...

    def settled(self, kind: Kind, name: str) -> None:
        """The object is handled again, or gone; nothing happens where it was not set aside."""
        ...


class _Unheard:
    """Nobody listens: what is odd passes in silence, and what crashes goes on as it would have."""

    def tell(self, kind: Kind, name: str, reason: str, *, about: About | None = None) -> None:
        pass

    def crashed(
        self, _kind: Kind, _name: str, error: Exception, *, about: About | None = None
    ) -> None:
        del about
        raise error

    def settled(self, kind: Kind, name: str) -> None:
        pass


UNHEARD: Oddities = _Unheard()
"""For caches that are looked at by tests and benchmarks alone."""
