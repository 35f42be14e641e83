"""How large a pod is, and what is kept of one that is larger than any setting allows.

The webhook refuses such a pod. It gets here if it was created while the webhook was away, or before
there were caps. It is never submitted (`bridge.domain.request.effective`), so what is dropped
decides nothing; it only must not cost memory and time.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from bridge.domain import caps
from bridge.domain.caps import Sizes
from bridge.domain.model.claims import asking
from bridge.domain.model.claims.values import PodClaim
from bridge.kube import wire
from slurmruntime.kube import meta
from slurmruntime.values import names

T = TypeVar("T")

_LONGEST_TEXT = 8192
"""Characters of an annotation that we did not write. Whatever we read of others is shorter."""

_MOST_CLAIMS = 32
"""Claims of one pod whose volumes limit where it may run; kube-scheduler looks at all of them."""

_OURS = ("slurm-bridge.dev/", "scheduler.slinky.slurm.net/", "slinky.slurm.net/")
"""These tie a placed pod to its job and stay, however many others there are."""


def sizes(meta: meta.Metadata, terms: Sequence[wire.NodeSelectorTerm], spec: wire.PodSpec) -> Sizes:
    """Measure a pod.

    Its grace period is left out too: that is clamped wherever it counts.
    """
    return caps.measure(
        grace_s=0,
        labels=meta.labels,
        annotations=meta.annotations,
        terms=[[r.values for r in (*t.match_expressions, *t.match_fields)] for t in terms],
        host_ports=sum(
            port.host_port != 0
            for container in (*spec.init_containers, *spec.containers)
            for port in container.ports
        ),
        tolerations=[(toleration.key, toleration.operator) for toleration in spec.tolerations],
    )


def is_readable(found: Sizes) -> bool:
    """Check whether the node affinity is small enough to be kept."""
    return all(
        getattr(found, name) <= caps.TABLE[name].largest
        for name in ("affinity_terms", "affinity_expressions", "affinity_values")
    )


def labels(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels, but no more than the largest number."""
    return _fewer(found, caps.TABLE["labels"].largest)


def annotations(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return the annotations, but no more than the largest number, and no long text of others."""
    kept = _fewer(found, caps.TABLE["annotations"].largest)
    if all(len(text) <= _LONGEST_TEXT for text in kept.values()):
        return kept
    return {
        key: text if key in names.WRITTEN_AT_THE_PIN else text[:_LONGEST_TEXT]
        for key, text in kept.items()
    }


def first(found: Iterable[T], name: str) -> tuple[T, ...]:
    """Return the first of a list, as many as the largest value of the cap allows."""
    return tuple(islice(found, caps.TABLE[name].largest))


def _fewer(found: Mapping[str, str], most: int) -> Mapping[str, str]:
    if len(found) <= most:
        return found
    ours = {key: text for key, text in found.items() if key.startswith(_OURS)}
    return dict(islice(ours.items(), most)) | dict(islice(found.items(), most))


def claims(spec: wire.PodSpec) -> tuple[str, ...]:
    """Return the names of the claims a pod uses, but no more than the largest number."""
    found = [
        volume.persistent_volume_claim.claim_name
        for volume in spec.volumes
        if volume.persistent_volume_claim
    ]
    return tuple(dict.fromkeys(found[:_MOST_CLAIMS]))


def resource_claims(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[PodClaim, ...]:
    """Return the resource claims a pod uses, but no more than the largest number."""
    if not spec.resource_claims:
        return ()
    made = {
        resource_claim_status.name: resource_claim_status.resource_claim_name
        for resource_claim_status in status.resource_claim_statuses
    }
    return tuple(
        PodClaim(
            entry=resource_claim.name,
            claim=resource_claim.resource_claim_name or made.get(resource_claim.name, ""),
            template=resource_claim.resource_claim_template_name,
        )
        for resource_claim in spec.resource_claims[: asking.MOST_CLAIMS + 1]
    )
