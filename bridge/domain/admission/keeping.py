"""Keep on a pod what we added to it when its manifest is applied again."""

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
    """Keep our schedulerName, toleration and claims on a pod that is being changed.

    Applying the user's manifest replaces these fields entirely and so would remove ours, which the
    API server refuses. A scheduler that is not ours stays as written, and is refused.
    """
    ours = names.schedulers(scheduler_name)
    if before.scheduler_name not in ours:
        return Verdict()
    met = by_class.drop_met(pod.class_askers, devices or Ways(), before.claim_templates)
    return Verdict(patch=(*_restore(pod, before, ours), *met))


def _restore(pod: Draft, before: Draft, ours: tuple[str, ...]) -> Iterator[Operation]:
    replaced = {"", names.DEFAULT_SCHEDULER_NAME, *ours} - {before.scheduler_name}
    if pod.scheduler_name in replaced:
        yield json_patch.add("/spec/schedulerName", before.scheduler_name)
    if any(map(review.tolerates_managed_nodes, before.tolerations or ())):
        yield from review.tolerating(pod)
