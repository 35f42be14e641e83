"""Compute the effective request: one placeholder, or every fault, from all that was read.

The extender calls it before every submit, because only there the owners are known. `explain` calls
the same function, so it shows the job that the extender would submit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.domain import caps, names, numbers
from bridge.domain.faults import Fault, Refused, bounded
from bridge.domain.ids import SlurmNode
from bridge.domain.model.identities import Frozen, Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.request import attribution, build, overrides
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.build import Defaults
from bridge.domain.request.candidates import Pool
from bridge.domain.request.permit import Permit
from bridge.domain.request.rules import Policy
from bridge.domain.workloads.workload import Workload

Texts = Mapping[str, str]
"""What is asked for, as written, keyed by the names of `overrides.FIELDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Everything that a request depends on, read once."""

    members: tuple[Pod, ...]
    """The workload's pods, at least one; a gang's in rank order."""
    gang: Workload | None = None
    """None if the pod is alone."""
    former: Texts | None = None
    """What the workload was submitted with before (`former`)."""
    provenance: Provenance
    """Covers at least the members that `with_a_say` lists."""
    policy: Policy
    """The policy by which it was decided what to read."""
    pool: Pool
    """The bridged nodes."""
    avoid: tuple[SlurmNode, ...] = ()
    """Nodes that Kubernetes has just been unable to use."""


def former(submitted: Iterable[Identity], members: Sequence[Pod]) -> Texts | None:
    """Return what the workload was last submitted with; None if it never was.

    Args:
        submitted: the identities of earlier placeholders, latest last; a group's name may be older
            than its pods.
        members: the current pods.
    """
    pods = {member.uid for member in members}
    asked = [
        identity.frozen.asked
        for identity in submitted
        if identity.frozen is not None and not pods.isdisjoint(identity.pods)
    ]
    return asked[-1] if asked else None


def with_a_say(members: Sequence[Pod], policy: Policy, *, was_submitted: bool) -> tuple[Pod, ...]:
    """List the members whose owners affect the request, so that no others have to be read."""
    return tuple(
        pod
        for position, pod in enumerate(members)
        if not was_submitted
        or policy.acts_for_others(attribution.maker(pod))
        or (position == 0 and pod.deadline_s is None)
    )


def effective(gathered: Gathered, defaults: Defaults) -> PlaceholderSpec | Refused:
    """Build the placeholder of a workload, or return what is wrong with the request."""
    if over := bounded(_oversized(gathered.members, defaults)):
        return Refused(over)
    texts = _said(gathered, defaults)
    if isinstance(texts, Refused):
        return texts
    asked, faults = overrides.read(texts)
    if faults:
        return Refused(faults)
    first, *others = gathered.members
    first = _with_deadline(first, gathered.provenance)
    permit = attribution.permitted((first, *others), asked, gathered.provenance, gathered.policy)
    if isinstance(permit, Refused):
        return permit
    spec = build.placeholder(
        first,
        asked,
        defaults,
        gathered.pool,
        permit=permit,
        avoid=gathered.avoid,
        gang=gathered.gang,
    )
    if isinstance(spec, Refused):
        return spec
    return replace(spec, identity=replace(spec.identity, frozen=_frozen(permit, texts)))


def _oversized(members: Sequence[Pod], defaults: Defaults) -> Iterator[Fault]:
    """Yield what the webhook would have refused, had it been asked."""
    for member in members:
        for fault in caps.faults(member.sizes, defaults.caps):
            path = fault.path if len(members) == 1 else f"{member.name}: {fault.path}"
            yield Fault(path, fault.message)


def _said(gathered: Gathered, defaults: Defaults) -> Texts | Refused:
    """Return what the workload was submitted with before, or else what it asks for now.

    That is what its members and their owners say.
    """
    if gathered.former is not None:
        return gathered.former
    above = {
        owner.uid: owner for pod in gathered.members for owner in gathered.provenance.above(pod)
    }
    by_owner = {uid: overrides.requests(owner.annotations) for uid, owner in above.items()}
    first, *others = gathered.members
    texts = _says(first, gathered.provenance, by_owner, defaults)
    for member in others:
        if _says(member, gathered.provenance, by_owner, defaults) != texts:
            path = f"metadata.annotations[{names.REQUEST_PREFIX}…]"
            words = (
                f"all pods of a gang must ask for the same; {first.name} and {member.name} do not"
            )
            return Refused((Fault(path, words),))
    return texts


def _says(
    pod: Pod, provenance: Provenance, by_owner: Mapping[str, Texts], defaults: Defaults
) -> Texts:
    """Merge what the pod asks for over its owners', nearest owner first, over its priority class's.

    by_owner: what each owner asks for, by its uid; the pods of a gang share their owners.
    """
    texts = dict(defaults.priority_classes.get(pod.priority_class, {}))
    for owner in reversed(provenance.above(pod)):
        texts |= by_owner[owner.uid]
    return texts | overrides.requests(pod.annotations)


def _with_deadline(pod: Pod, provenance: Provenance) -> Pod:
    """Give the pod its Job's `activeDeadlineSeconds` if it has none of its own.

    A Job's deadline ends all of its pods.
    """
    nearest = next(iter(provenance.above(pod)), None)
    deadline_s = nearest.spec.get("activeDeadlineSeconds") if nearest else None
    if pod.deadline_s is not None or not isinstance(deadline_s, int):
        return pod
    return replace(pod, deadline_s=numbers.seconds(deadline_s))


def _frozen(permit: Permit, asked: Texts) -> Frozen:
    return Frozen(
        requester=permit.requester,
        rule=permit.rule,
        user=permit.user,
        account=permit.account,
        asked=asked,
    )
