"""Decide which Slurm user a workload's job runs as, and whether it may have what it asks for.

The webhook recorded on each pod who created it; that cannot be changed afterwards. If the creator
is a controller and the cluster records the creators of objects, the job belongs to the creator of
the pod's nearest owner that no controller created.

Owners can be edited later: a user who may edit a Job can write that someone else's CronJob owns it, and
a user who relabels a pod can have it adopted. So only owners that were recorded at CREATE count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.domain.model.pods import Pod
from bridge.domain.request import permit
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Ask, Permit
from bridge.domain.request.rules import POD, Policy, Requester, Rule
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names
from slurmruntime.values.faults import Fault, Refusal
from slurmruntime.values.ids import PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the pods of a workload come from."""

    owners: Mapping[PodUid, Sequence[KubeObject]] = field(default_factory=dict)
    """The controllers above each pod, nearest first, as far as they can be read."""
    groups: Mapping[PodUid, Sequence[KubeObject]] = field(default_factory=dict)
    """The PodGroup that each pod names, and the Workload behind it. They state a request, but never
    count as a pod's creator: anyone in the namespace can name them."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """{} if the policy does not ask for them."""
    operators: frozenset[str] = frozenset()
    """The name and the uid of SlurmUser, who may do everything; none if Slurm cannot report them.
    No rule may result in one of them."""

    def above(self, pod: Pod) -> Sequence[KubeObject]:
        """Return the pod's controllers, nearest first."""
        return self.owners.get(pod.uid, ())


def maker(pod: Pod) -> Requester:
    """Return who created the pod, as recorded by the webhook."""
    return Requester(user=pod.annotations.get(names.REQUESTER_ANNOTATION, ""))


def permitted(
    members: Sequence[Pod], asked: Overrides, provenance: Provenance, policy: Policy
) -> Permit:
    """Permit the effective request of a workload's members; there must be at least one.

    Raises Refusal if no rule applies to a member, or its rule does not allow the request.
    """
    granted = [_permitted(pod, asked, provenance, policy) for pod in members]
    users = sorted(
        {f"{entry.user}:{entry.group} in account {entry.account!r}" for entry in granted}
    )
    if len(users) > 1:
        words = f"refused: a job has one user, but the policy gives its pods to {', '.join(users)}"
        raise Refusal(Fault(permit.PATH, words))
    return granted[0]


def _permitted(pod: Pod, asked: Overrides, provenance: Provenance, policy: Policy) -> Permit:
    requester, rule = holding(
        pod.annotations,
        namespace=pod.namespace,
        kind=POD,
        owners=provenance.above(pod),
        namespace_labels=provenance.namespace_labels,
        policy=policy,
    )
    choices = permit.node_choices(
        has_selector=bool(pod.node_selector), has_terms=bool(pod.node_terms)
    )
    ask = Ask(overrides=asked, deadline_s=pod.deadline_s, node_choices=choices)
    return permit.decide(
        rule, ask, requester=requester, namespace=pod.namespace, operators=provenance.operators
    )


def holding(
    annotations: Mapping[str, str],
    *,
    namespace: str,
    kind: str,
    owners: Iterable[KubeObject] = (),
    namespace_labels: Mapping[str, str],
    policy: Policy,
) -> tuple[Requester, Rule]:
    """Return whose object it is, and the rule that applies to it.

    Args:
        annotations: the object's, with what the webhook recorded at CREATE.
        owners: a pod's: the controllers above it, nearest first, as far as they can be read.
        namespace_labels: {} if the policy does not ask for them.

    Raises:
        Refusal: no rule applies.
    """
    requester = Requester(user=annotations.get(names.REQUESTER_ANNOTATION, ""))
    named = _named(annotations.get(names.RULES_ANNOTATION))
    if policy.acts_for_others(requester):
        creator = _creator(annotations, owners, policy)
        if creator:
            requester, named = Requester(user=creator), None
    rule = policy.holding(requester, namespace, namespace_labels, named=named, kind=kind)
    if rule is None:
        why = policy.why_no_rule(requester, namespace, named=named, kind=kind)
        raise Refusal(Fault(permit.PATH, why))
    return requester, rule


def _creator(annotations: Mapping[str, str], owners: Iterable[KubeObject], policy: Policy) -> str:
    """Return the recorded creator of the nearest owner that no controller created; "" if none is.

    Stop at an owner that was not recorded when the object below it was created. Do not simply take
    the root's creator: anyone can list another user's object as an owner of their own.
    """
    recorded = annotations.get(names.OWNER_ANNOTATION)
    for owner in owners:
        if owner.uid != recorded:
            return ""
        creator = owner.annotations.get(policy.creator_annotation, "")
        if not policy.controllers.match(creator):
            return creator
        recorded = owner.annotations.get(policy.owner_annotation)
    return ""


def _named(text: str | None) -> Sequence[str] | None:
    """Split the rule names; None if no webhook of ours has seen the object.

    Such an object is older than the policy, or was let in some other way.
    """
    return None if text is None else list(filter(None, text.split(",")))
