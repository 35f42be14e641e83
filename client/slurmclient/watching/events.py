"""What a picture tells."""

from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

V = TypeVar("V", bound=Struct)


class Added(Struct, Generic[V], frozen=True):
    """An object is there that was not."""

    new: V


class Modified(Struct, Generic[V], frozen=True):
    """An object is another than it was."""

    old: V
    new: V


class Deleted(Struct, Generic[V], frozen=True):
    """An object is not there any more; of a job: Slurm has forgotten it."""

    old: V


class Restarted(Struct, frozen=True):
    """What was known is not true any more: Slurm lost its state, or gave a job's id to another. A new picture follows."""


Event: TypeAlias = Added[V] | Modified[V] | Deleted[V] | Restarted
