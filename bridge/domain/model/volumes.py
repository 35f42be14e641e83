"""Volumes, as far as they limit where a pod may run."""

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.domain.model.pods import NodeTerm

Reach = tuple[NodeTerm, ...]
"""The nodes from which one volume can be used: alternatives, as in a required node affinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeClaim:
    """A PersistentVolumeClaim."""

    name: str
    volume: str = ""
    """The PersistentVolume it is bound to; "" while it is not."""
    storage_class: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A StorageClass."""

    waits_for_consumer: bool = False
    """The volume is made where the first pod that uses it is bound."""
    reach: Reach = ()
    """`allowedTopologies`: where volumes can be made; () means anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """What was read about one claim of a pod."""

    name: str
    claim: VolumeClaim | None
    """None: there is no such claim."""
    reach: Reach = ()
    """That of its volume; () means anywhere, or that there is none yet."""
    storage_class: StorageClass | None = None
    """Read only if the claim is not bound; None: there is no such class, or it may not be read."""


Claims = Sequence[ClaimFacts]
"""All claims of one pod."""
