"""Record at CREATE who creates an object, and check that they may have what they ask for.

The chart's admission policies keep everyone else from writing these annotations, then and later.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bridge.domain.request import permit
from bridge.domain.request.permit import Ask
from bridge.domain.request.rules import Policy, Requester
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names
from slurmruntime.values.faults import Fault, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """An object that is about to be created, as far as its author matters."""

    kind: str
    """One of `bridge.domain.request.rules.KINDS`."""
    namespace: str
    requester: Requester
    annotations: Mapping[str, str]
    controller_uid: str
    """The uid of the controlling owner; "" without one."""


def record(new: Authorship, policy: Policy) -> Iterator[Operation]:
    """Return the patch that records the author, in place of whatever the author wrote there."""
    rules = policy.candidates(new.requester, new.namespace, kind=new.kind)
    ours = {
        names.REQUESTER_ANNOTATION: new.requester.user,
        names.RULES_ANNOTATION: ",".join(rule.name for rule in rules),
    }
    if new.controller_uid or names.OWNER_ANNOTATION in new.annotations:
        ours[names.OWNER_ANNOTATION] = new.controller_uid
    if not new.annotations:
        yield json_patch.add("/metadata/annotations", ours)
        return
    for key, value in ours.items():
        if new.annotations.get(key) != value:
            yield json_patch.add(f"/metadata/annotations/{json_patch.escape(key)}", value)


def author_faults(new: Authorship) -> Iterator[Fault]:
    """Check the recorded requester and owner: another webhook may have changed them since.

    The rules may differ, because two replicas may read a new policy at different times.
    """
    written = {
        names.REQUESTER_ANNOTATION: new.requester.user,
        names.OWNER_ANNOTATION: new.controller_uid,
    }
    for key, expected in written.items():
        if new.annotations.get(key, expected) != expected:
            yield Fault(
                f"metadata.annotations[{key}]",
                f"expected {expected!r}, as slurm-bridge wrote it: "
                "check the cluster's mutating webhooks",
            )


def not_permitted(new: Authorship, ask: Ask, policy: Policy) -> Iterator[Fault]:
    """Return the faults of the object's own request if no rule that may apply would allow it.

    Which one applies may depend on the labels of the namespace, which are not known at CREATE.
    """
    if policy.acts_for_others(new.requester):
        return  # whose object it is depends on its owners, which are not known here
    rules = policy.candidates(new.requester, new.namespace, kind=new.kind)
    if not rules:
        yield Fault(permit.PATH, policy.why_no_rule(new.requester, new.namespace, kind=new.kind))
    faults: list[Fault] = []
    for rule in rules:
        try:
            permit.decide(rule, ask, requester=new.requester, namespace=new.namespace)
        except Refusal as refusal:
            faults += refusal.faults
        else:
            return
    yield from dict.fromkeys(faults)
