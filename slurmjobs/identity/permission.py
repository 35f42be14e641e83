"""Decide on a SlurmJob as it is stored: whose job it becomes, and whether it may have what it asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridge.domain.request import attribution, permit
from bridge.domain.request.permit import Permit
from bridge.domain.request.rules import SLURM_JOB, Policy
from slurmjobs.identity import asking
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.script.chosen import ChosenOptions
from slurmruntime.model.objects import KubeObject
from slurmruntime.values.faults import Fault, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProvenance:
    """Where a SlurmJob comes from."""

    owners: Sequence[KubeObject] = ()
    """The controllers above it, nearest first, as far as they can be read."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """{} if the policy does not ask for them."""
    operators: frozenset[str] = frozenset()
    """The name and the uid of SlurmUser: no rule may result in one of them."""


def permitted(
    job: SlurmJobObject, options: ChosenOptions, provenance: JobProvenance, policy: Policy
) -> Permit | Refused:
    """Decide by the author that was recorded at CREATE, and the rules as they are now.

    Faults have the paths of the options: `line 3`, `fields.account`.
    """
    namespace = job.metadata.namespace
    held = attribution.holding(
        job.metadata.annotations,
        namespace=namespace,
        kind=SLURM_JOB,
        owners=provenance.owners,
        namespace_labels=provenance.namespace_labels,
        policy=policy,
    )
    if isinstance(held, Refused):
        return held
    requester, rule = held
    if job.only_rule and rule.name != job.only_rule:
        return Refused((_not_its_rule(job.only_rule, rule.name),))
    granted = permit.decide(
        rule,
        asking.ask(options),
        requester=requester,
        namespace=namespace,
        operators=provenance.operators,
    )
    never = tuple(asking.never_allowed(options))
    if isinstance(granted, Refused):
        return Refused((*granted.faults, *never))
    return Refused(never) if never else granted


def _not_its_rule(wanted: str, found: str) -> Fault:
    return Fault(
        "spec.ssh.user",
        f"refused: it stands for policy rule {wanted}, and rule {found} applies here",
    )
