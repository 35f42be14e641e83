"""Compute the effective request: one placeholder, or every fault, from all that was read.

The extender calls it before every submit, because only there the owners are known. `explain` calls
the same function, so it shows the job that the extender would submit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.domain import caps
from bridge.domain.model import volumes
from bridge.domain.model.identities import FirstSubmission, Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.model.volumes import Claims
from bridge.domain.request import attribution, build, overrides
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.build import Defaults
from bridge.domain.request.candidates import Pool
from bridge.domain.request.rules import POD, Policy
from bridge.domain.workloads.workload import Workload
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names, numbers
from slurmruntime.values.faults import Fault, Refusal, bounded
from slurmruntime.values.ids import PodUid, SlurmNode

Texts = Mapping[str, str]
"""What is asked for, as written, keyed by the names of `overrides.FIELDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """Everything that a request depends on, read once."""

    members: tuple[Pod, ...]
    """The workload's pods, at least one; a gang's in rank order."""
    gang: Workload | None = None
    """None if the pod is alone."""
    former: Texts | None = None
    """What the workload was submitted with before (`former`)."""
    provenance: Provenance
    """Covers at least the members that `deciding_members` lists."""
    policy: Policy
    """The policy by which it was decided what to read."""
    pool: Pool
    avoid: tuple[SlurmNode, ...] = ()
    """Nodes that Kubernetes has just been unable to use."""
    claims: Mapping[PodUid, Claims] = field(default_factory=dict)
    """What is known of the claims of each member that has some."""
    unclaimable: tuple[Fault, ...] = ()
    """What is wrong with the members' resource claims."""


def former(submitted: Iterable[Identity], members: Sequence[Pod]) -> Texts | None:
    """Return what the workload was last submitted with; None if it never was.

    Args:
        submitted: the identities of earlier placeholders, latest last. Those of other pods do not
            count: a group's name may be older than its pods.
        members: the current pods.
    """
    pods = {member.uid for member in members}
    asked = [
        identity.frozen.asked
        for identity in submitted
        if identity.frozen is not None and not pods.isdisjoint(identity.pods)
    ]
    return asked[-1] if asked else None


def deciding_members(
    members: Sequence[Pod], policy: Policy, *, was_submitted: bool
) -> tuple[Pod, ...]:
    """List the members whose owners affect the request, so that no others have to be read."""
    return tuple(
        pod
        for position, pod in enumerate(members)
        if not was_submitted
        or policy.acts_for_others(attribution.maker(pod))
        or (position == 0 and pod.deadline_s is None)
    )


def effective(gathered: RequestFacts, defaults: Defaults) -> PlaceholderSpec:
    """Build the placeholder of a workload; raise Refusal with what is wrong."""
    if over := bounded(_oversized(gathered.members, defaults)):
        raise Refusal(*over)
    if gathered.unclaimable:
        raise Refusal(*bounded(gathered.unclaimable))
    claims = [gathered.claims.get(member.uid, ()) for member in gathered.members]
    if unusable := bounded(fault for claim in claims for fault in volumes.faults(claim)):
        raise Refusal(*unusable)
    texts = _request_texts(gathered, defaults)
    asked, faults = overrides.read(texts)
    if faults:
        raise Refusal(*faults)
    first, *others = gathered.members
    first = _with_deadline(first, gathered.provenance)
    permit = attribution.permitted((first, *others), asked, gathered.provenance, gathered.policy)
    spec = build.placeholder(
        first,
        asked,
        defaults,
        gathered.pool,
        permit=permit,
        avoid=gathered.avoid,
        reaches=volumes.in_common(claims),
        gang=gathered.gang,
    )
    frozen = FirstSubmission(
        requester=permit.requester,
        rule=permit.rule,
        user=permit.user,
        account=permit.account,
        asked=texts,
    )
    return replace(spec, identity=replace(spec.identity, frozen=frozen))


def _oversized(members: Sequence[Pod], defaults: Defaults) -> Iterator[Fault]:
    """Yield what the webhook would have refused, had it been asked."""
    for member in members:
        for fault in caps.faults(member.sizes, defaults.caps):
            path = fault.path if len(members) == 1 else f"{member.name}: {fault.path}"
            yield Fault(path, fault.message)


def _request_texts(gathered: RequestFacts, defaults: Defaults) -> Texts:
    """Return what the workload was submitted with before, or else what it asks for now."""
    if gathered.former is not None:
        return gathered.former
    from_ = gathered.provenance
    sources = {
        source.uid: source
        for pod in gathered.members
        for source in (*from_.above(pod), *from_.groups.get(pod.uid, ()))
    }
    together = {member.uid for member in gathered.members}
    by_source = {
        uid: _handed_on(source, is_apart=uid not in together) for uid, source in sources.items()
    }
    first, *others = gathered.members
    texts = _member_texts(first, gathered.provenance, by_source, defaults)
    for member in others:
        if _member_texts(member, gathered.provenance, by_source, defaults) != texts:
            path = f"metadata.annotations[{names.REQUEST_PREFIX}…]"
            words = (
                f"all pods of a gang must ask for the same; {first.name} and {member.name} do not"
            )
            raise Refusal(Fault(path, words))
    return texts


def _handed_on(source: KubeObject, *, is_apart: bool) -> Texts:
    """Return what an owner or a group asks for, for its pods.

    Args:
        is_apart: it is not one of the job's own pods. Such a pod asks for sizes, times and names
            for itself only (`overrides.HANDED_ON_BY_PODS`); the leader of a group asks for all.
    """
    texts = overrides.requests(source.annotations)
    if source.kind != POD or not is_apart:
        return texts
    return {key: text for key, text in texts.items() if key in overrides.HANDED_ON_BY_PODS}


def _member_texts(
    pod: Pod, provenance: Provenance, by_source: Mapping[str, Texts], defaults: Defaults
) -> Texts:
    """Merge all that is asked for: what comes later takes precedence.

    The order is: the priority class, the PodGroup, the owners from the root down, the Workload, the
    pod. Without the pod, that is the order of SchedMD's bridge.

    Args:
        by_source: what each owner and group asks for, by its uid; the pods of a gang share them.
    """
    group, *workload = provenance.groups.get(pod.uid) or (None,)
    sources = [*([group] if group else []), *reversed(provenance.above(pod)), *workload]
    texts = dict(defaults.priority_classes.get(pod.priority_class, {}))
    for source in sources:
        if source is not None:
            texts |= by_source[source.uid]
    return texts | overrides.requests(pod.annotations)


def _with_deadline(pod: Pod, provenance: Provenance) -> Pod:
    """Give the pod its Job's `activeDeadlineSeconds` if it has none of its own.

    A Job's deadline ends all of the Job's pods; a pod's own deadline ends only that pod.
    """
    nearest = next(iter(provenance.above(pod)), None)
    if nearest is None or nearest.kind == POD:
        return pod
    deadline_s = nearest.spec.get("activeDeadlineSeconds")
    if pod.deadline_s is not None or not isinstance(deadline_s, int):
        return pod
    return replace(pod, deadline_s=numbers.seconds(deadline_s))
