"""Decide on a SlurmJob as it is stored: whose job it becomes, and whether its requests are allowed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridge.domain.request import attribution, permit
from bridge.domain.request.permit import Permit
from bridge.domain.request.rules import SLURM_JOB, Policy
from slurmjobs.identity import asking
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.script.option_values import OptionValues
from slurmruntime.model.objects import KubeObject
from slurmruntime.values.faults import Fault, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProvenance:
    """Where a SlurmJob comes from."""

    owners: Sequence[KubeObject] = ()
    """Its owning controllers, nearest first, as far as they can be read."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """{} if the policy does not need them."""
    operators: frozenset[str] = frozenset()
    """The name and the uid of SlurmUser: no rule may run jobs as either."""


def decide(
    job: SlurmJobObject, options: OptionValues, provenance: JobProvenance, policy: Policy
) -> Permit | Refused:
    """Decide by the author recorded at CREATE and by the present rules.

    Faults have the paths of the options: `line 3`, `fields.account`.
    """
    namespace = job.metadata.namespace
    holding = attribution.holding(
        job.metadata.annotations,
        namespace=namespace,
        kind=SLURM_JOB,
        owners=provenance.owners,
        namespace_labels=provenance.namespace_labels,
        policy=policy,
    )
    if isinstance(holding, Refused):
        return holding
    requester, rule = holding
    if job.only_rule and rule.name != job.only_rule:
        return Refused((_wrong_rule(job.only_rule, rule.name),))
    granted = permit.decide(
        rule,
        asking.ask(options),
        requester=requester,
        namespace=namespace,
        operators=provenance.operators,
    )
    never_allowed = tuple(asking.never_allowed(options))
    if isinstance(granted, Refused):
        return Refused((*granted.faults, *never_allowed))
    return Refused(never_allowed) if never_allowed else granted


def _wrong_rule(required: str, actual: str) -> Fault:
    return Fault(
        "spec.ssh.user",
        f"refused: it requires policy rule {required}, but rule {actual} applies",
    )
