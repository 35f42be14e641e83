"""The interface for reporting objects that cannot be handled; `bridge.reconcile.set_aside` implements it."""

from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["pod", "other_pod", "node", "object", "workload", "slurm_node", "slurm_job"]
"""The kind of an object that is set aside, as logs and metrics call it.

A pod of ours; another pod that has a node; a node; any other Kubernetes object; a key of the pod
loop; a key of the node loop; a job as Slurm lists it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """An object of Kubernetes that can carry an Event."""

    api_version: str = "v1"
    kind: str
    """`Pod`, `Node`, `SlurmJob`."""
    namespace: str = ""
    name: str
    uid: str

    @property
    def full_name(self) -> str:
        """`namespace/name`, or just the name of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Oddities(Protocol):
    """Sets one odd object aside, so that it costs only itself."""

    def tell(self, kind: Kind, name: str, reason: str, *, about: About | None = None) -> None:
        """Set an object aside because of its content; report it once, however often called."""

    def crashed(
        self, kind: Kind, name: str, error: Exception, *, about: About | None = None
    ) -> None:
        """Set an object aside that we failed on: a bug of ours, to be reported."""

    def settled(self, kind: Kind, name: str) -> None:
        """Note that an object is handled again or gone; a no-op if it was not set aside."""


class _Unheard:
    """A sink: odd objects pass silently, and a crash is raised again."""

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
"""For caches that only tests and benchmarks read."""
