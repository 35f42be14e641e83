"""Decide on a SlurmJob as it is stored: whose job it becomes, and whether its requests are allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bridge.domain.request import attribution, permit
from bridge.domain.request.permit import Permit
from bridge.domain.request.rules import SLURM_JOB, Policy
from slurmjobs.identity import asking
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.request import description
from slurmjobs.request.build import BatchRequest
from slurmjobs.script.option_values import OptionValues
from slurmruntime.values.faults import Fault, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProvenance:
    """Where a SlurmJob comes from."""

    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """{} if the policy does not need them."""
    operators: frozenset[str] = frozenset()
    """The name and the uid of SlurmUser: no rule may run jobs as either."""


def decide(
    job: SlurmJobObject, options: OptionValues, provenance: JobProvenance, policy: Policy
) -> Permit:
    """Decide by the author recorded at CREATE and by the present rules.

    Raises:
        Refusal: its faults have the paths of the options: `line 3`, `fields.account`.
    """
    namespace = job.metadata.namespace
    requester, rule = attribution.holding(
        job.metadata.annotations,
        namespace=namespace,
        kind=SLURM_JOB,
        namespace_labels=provenance.namespace_labels,
        policy=policy,
    )
    if job.only_rule and rule.name != job.only_rule:
        why = f"refused: it requires policy rule {job.only_rule}, but rule {rule.name} applies"
        raise Refusal(Fault("spec.ssh.user", why))
    never_allowed = tuple(asking.never_allowed(options))
    try:
        granted = permit.decide(
            rule,
            asking.ask(options),
            requester=requester,
            namespace=namespace,
            operators=provenance.operators,
        )
    except Refusal as refusal:
        raise Refusal(*refusal.faults, *never_allowed) from refusal
    if never_allowed:
        raise Refusal(*never_allowed)
    return granted


def grant(request: BatchRequest, permit: Permit) -> BatchRequest:
    """Return the request with the permitted user and group, and the rule's defaults and time limit."""
    chosen = {
        "account": permit.account,
        "partition": permit.partition,
        "qos": permit.qos,
        "reservation": permit.reservation,
    }
    fields = {
        **request.fields,
        "user_id": permit.user,
        "group_id": permit.group,
        **{name: value for name, value in chosen.items() if value},
    }
    most = permit.time_limit_max_min
    if most is not None and "time_limit" not in fields:
        fields["time_limit"] = description.number(most)
    return replace(request, fields=fields)
