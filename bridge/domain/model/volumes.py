"""Volumes, as far as they limit where a pod may run: Slurm does not know them.

Source: kube-scheduler's filter VolumeBinding. Node limits of CSI drivers and ReadWriteOncePod are
left to kube-scheduler: the next submit avoids nodes where a pod could not be bound for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from slurmruntime.model.affinity import NodeTerm
from slurmruntime.values.faults import Fault

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


def reaches(claims: Iterable[ClaimFacts]) -> tuple[Reach, ...]:
    """Return the limits of all volumes, all of which hold; none for a volume that is anywhere."""
    limits = (_reach(facts) for facts in claims)
    return tuple(dict.fromkeys(reach for reach in limits if reach))


def faults(claims: Iterable[ClaimFacts]) -> Iterator[Fault]:
    """Yield what keeps Kubernetes from binding the pod anywhere, as it would report itself.

    With such a fault, Slurm is not asked for nodes that the pod could not use.
    """
    for facts in claims:
        path = "spec.volumes[*].persistentVolumeClaim"
        if facts.claim is None:
            yield Fault(path, f"claim {facts.name} does not exist")
        elif not facts.claim.volume and (cls := facts.storage_class) and not cls.waits_for_consumer:
            # A class that we cannot read may be one whose volumes are made when the pod is bound.
            yield Fault(path, f"claim {facts.name} is not bound to a volume yet")


def in_common(claims: Sequence[Claims]) -> tuple[Reach, ...]:
    """Return the limits that all members of a gang share: a job asks for one set of nodes."""
    first, *others = (reaches(claim) for claim in claims)
    return tuple(reach for reach in first if all(reach in other for other in others))


def _reach(facts: ClaimFacts) -> Reach:
    if facts.claim is not None and facts.claim.volume:
        return facts.reach
    return facts.storage_class.reach if facts.storage_class else ()
