"""Review an object of Sylabs' kinds as the SlurmJob it translates to, with faults at the paths of its own fields."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import SLURM_JOB, Policy, Requester
from slurmjobs.admission import review
from slurmjobs.sylabs.job import SylabsJob
from slurmruntime.values.faults import MOST_FAULTS, Fault, bounded


def validate(job: SylabsJob, requester: Requester, policy: Policy, now: datetime) -> Verdict:
    """Return everything that is wrong with the object; like `review.validate`."""
    verdict = review.validate(job, requester, policy, now)
    places = job.places
    translated = (
        Fault(places.get(fault.path, fault.path), fault.message) for fault in verdict.faults
    )
    own_warnings = (warning.text for warning in job.warnings)
    parts = (text.partition(": ") for text in verdict.warnings)
    warnings = (f"{places.get(path, path)}{colon}{message}" for path, colon, message in parts)
    return Verdict(
        faults=bounded((*job.faults, *_wrong_rule(job, requester, policy), *translated)),
        warnings=tuple(islice((*own_warnings, *warnings), MOST_FAULTS)),
    )


def _wrong_rule(job: SylabsJob, requester: Requester, policy: Policy) -> Iterator[Fault]:
    if not job.only_rule:
        return
    rules = policy.candidates(requester, job.metadata.namespace, kind=SLURM_JOB)
    if job.only_rule not in (rule.name for rule in rules):
        applicable = ", ".join(rule.name for rule in rules) or "none"
        yield Fault(
            "spec.ssh.user",
            f"it requires policy rule {job.only_rule}, which does not apply to {requester.user!r} in this namespace; rules that do: {applicable}",
        )
