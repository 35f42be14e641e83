"""Maps a pod to its workload: each kind is asked, in the order of `kinds`.

The rules follow what the real controllers do while all pods are gated (which members exist, which
labels they have). The pod itself takes precedence over its owners; two different groups
claimed by one pod are a fault, and so is half a claim. What a pod names, and is of a kind that may
make it one of a gang, must be readable, or the pod waits; an owner of any other kind that cannot be
read claims nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import kinds, membership, own_keys
from bridge.domain.workloads.kinds import leader_worker_set, owner
from bridge.domain.workloads.membership import KindWithDeclaration, Membership, alone
from slurmruntime.model.objects import KubeObject, Owner, Reference
from slurmruntime.values import names
from slurmruntime.values.faults import Fault


def of(pod: Pod, owners: Sequence[KubeObject]) -> Membership:
    """Return the workload that the pod belongs to.

    owners: its controllers as far as they can be read, the nearest first.
    """
    if faults := tuple(_misunderstood(pod, owners)):
        return membership.faulty(pod, faults)
    claim = _claim(pod, owners)
    if claim.rank or not claim.is_gang:
        return claim
    return replace(claim, rank=_rank(pod))


def needs_owners(pod: Pod) -> bool:
    """Check whether its owners matter: it has one, and does not name its group itself."""
    return pod.owner is not None and not any(True for _ in _named(pod))


def declaring(pod: Pod) -> Reference | None:
    """Return the object that the pod names as its group's; None if it names none, or several."""
    named = tuple(_named(pod))
    return named[0].declared_by if len(named) == 1 else None


def is_declared(pod: Pod) -> bool:
    """Check whether the pod names a group that an object declares.

    Only that object shows whether the group is a gang.
    """
    return any(is_unconfirmed(claim) for claim in _named(pod))


def is_unconfirmed(member: Membership) -> bool:
    """Check whether the claim only holds if the object that the pod names agrees: see `settled`."""
    return isinstance(member.by, KindWithDeclaration)


def settled(
    member: Membership, pod: Pod, declared: KubeObject | None, *, unread: str = ""
) -> Membership:
    """Confirm or drop a group that an object declares; hold the pod back if it cannot be known.

    Args:
        member: what the pod claims.
        declared: the object as it was read; None if it does not exist (yet), so wait for it.
        unread: why the API server does not let us read it, or does not know its kind; "" if it
            was read.
    """
    if not isinstance(member.by, KindWithDeclaration):
        return member
    if unread:
        what = f"{member.kind} {member.namespace}/{member.name}"
        return membership.unread(pod, what, unread)
    return member if member.by.is_gang(declared) else alone(pod)


def beneath(
    member: Membership, pod: Pod, owners: Sequence[KubeObject], missing: Owner, *, why: str
) -> Membership:
    """Hold a pod back if an owner could not be read that may make it one of a gang.

    Args:
        member: what the pod belongs to by its other owners.
        owners: those that were read, the nearest first.
        missing: the next one above them.
        why: why it could not be read.
    """
    is_complete = member.kind == leader_worker_set.KIND or bool(member.faults)
    is_out = owner.annotation(pod, owners, names.GANG_ANNOTATION) == "false"
    if is_complete or is_out or not kinds.may_be_gang(missing.api_version, missing.kind):
        return member
    return membership.unread(pod, f"{missing.kind} {pod.namespace}/{missing.name}", why)


def _claim(pod: Pod, owners: Sequence[KubeObject]) -> Membership:
    named = tuple(_named(pod))
    if len(named) > 1:
        groups = " and ".join(f"{claim.kind} {claim.name}" for claim in named)
        return alone(
            pod, [Fault("metadata.labels", f"two groups claim the pod, {groups}: keep one")]
        )
    if named:
        return named[0]
    if owner.annotation(pod, owners, names.GANG_ANNOTATION) == "false":
        return alone(pod)
    return next(claim for kind in kinds.OWNED if (claim := kind.claim(pod, owners)))


def _misunderstood(pod: Pod, owners: Sequence[KubeObject]) -> Iterator[Fault]:
    """Yield what is wrong with our own keys on the pod, which the webhook refuses, and on its owners."""
    yield from own_keys.faults(pod.annotations)
    yield from own_keys.faults(pod.labels, "metadata.labels")
    for source in owners:
        yield from own_keys.faults(
            source.annotations, f"{source.kind} {source.name}: metadata.annotations"
        )


def _named(pod: Pod) -> Iterator[Membership]:
    return (claim for kind in kinds.NAMED if (claim := kind.claim(pod, ())))


def _rank(pod: Pod) -> tuple[int, ...]:
    return next(filter(None, (kind.rank(pod) for kind in kinds.RANKED)), ())
