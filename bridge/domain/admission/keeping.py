"""What a pod has from us stays when somebody applies its manifest again."""

from collections.abc import Iterator

from bridge.domain.admission import by_class, review
from bridge.domain.admission.review import Draft, Verdict
from bridge.domain.model.claims.by_class import Ways
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names


def keep(
    pod: Draft,
    before: Draft,
    scheduler_name: str = names.SCHEDULER_NAME,
    *,
    devices: Ways | None = None,
) -> Verdict:
    """Leave on a changed pod schedulerName, toleration and claims that it has from us.

    An apply of what its user wrote would take them off, as it replaces these fields whole, and the
    API server would refuse that. A scheduler that is not ours stays written, and is refused.
    """
    ours = names.schedulers(scheduler_name)
    if before.scheduler_name not in ours:
        return Verdict()
    met = by_class.met(pod.class_askers, devices or Ways(), before.claim_templates)
    return Verdict(patch=(*_kept(pod, before, ours), *met))


def _kept(pod: Draft, before: Draft, ours: tuple[str, ...]) -> Iterator[Operation]:
    if pod.scheduler_name != before.scheduler_name and pod.scheduler_name in (
        "",
        names.DEFAULT_SCHEDULER_NAME,
        *ours,
    ):
        yield json_patch.add("/spec/schedulerName", before.scheduler_name)
    if any(map(review.tolerates_managed_nodes, before.tolerations or ())):
        yield from review.tolerating(pod)
