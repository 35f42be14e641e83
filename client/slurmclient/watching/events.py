"""The events of a watch."""

from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

V = TypeVar("V", bound=Struct)


class Added(Struct, Generic[V], frozen=True):
    """An object is new."""

    new: V


class Modified(Struct, Generic[V], frozen=True):
    """An object differs from its last version."""

    old: V
    new: V


class Deleted(Struct, Generic[V], frozen=True):
    """An object is gone. A job is gone when slurmctld purges it, MinJobAge seconds after its end."""

    old: V


class Restarted(Struct, frozen=True):
    """Earlier events may be void; events that describe the new state follow.

    slurmctld has lost its state or reused a job id, or a handler has fallen too far behind.
    """


Event: TypeAlias = Added[V] | Modified[V] | Deleted[V] | Restarted
