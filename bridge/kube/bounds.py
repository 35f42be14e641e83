"""Measure a pod, and truncate one that is larger than any setting allows.

The webhook refuses such a pod. It gets here if it was created while the webhook was away or before
there were caps, or if it was changed since: its author may add tolerations at any time, and change the node affinity
while a gate is on it. It is never submitted (`bridge.domain.request.effective`), so no decision needs what is
dropped; it only must not cost memory and time.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

import msgspec

from bridge.domain import caps
from bridge.domain.caps import Sizes
from bridge.domain.model.claims import asking
from bridge.domain.model.claims.values import PodClaim
from bridge.kube import wire
from slurmruntime.kube import meta
from slurmruntime.values import names
from slurmruntime.values.part import LONGEST_AFFINITY_BYTES, LONGEST_LIST_BYTES, Part

T = TypeVar("T")

_LONGEST_TEXT = 8192
"""Characters of an annotation that we did not write. Annotations of others that we read are shorter."""

_MOST_CLAIMS = 32
"""Claims of one pod whose volumes limit where it may run; kube-scheduler checks all of them."""

_AFFINITY: Final = Part(
    wire.NodeAffinity, path="$.spec.affinity.nodeAffinity", longest_bytes=LONGEST_AFFINITY_BYTES
)
_TOLERATIONS: Final = Part(
    list[wire.Toleration], path="$.spec.tolerations", longest_bytes=LONGEST_LIST_BYTES
)
_TOO_MANY_TOLERATIONS: Final = [wire.Toleration()] * caps.TABLE["tolerations"].uncounted
_TOO_MANY_TERMS: Final = wire.NodeAffinity(
    wire.NodeSelector([wire.NodeSelectorTerm()] * caps.TABLE["affinity_terms"].uncounted)
)
"""What stands for lists that are not read: more than any setting allows."""

_OURS = ("slurm-bridge.dev/", "scheduler.slinky.slurm.net/", "slinky.slurm.net/")
"""These tie a placed pod to its job and stay, however many others there are."""


def terms(affinity: wire.Affinity | None) -> list[wire.NodeSelectorTerm]:
    """Return the terms of the required node affinity; more than any setting allows if they are too long to be read."""
    read = _AFFINITY.read(
        affinity.node_affinity if affinity else msgspec.Raw(),
        absent=wire.NodeAffinity(),
        too_long=_TOO_MANY_TERMS,
    )
    return read.required_during_scheduling_ignored_during_execution.node_selector_terms


def tolerations(spec: wire.PodSpec) -> list[wire.Toleration]:
    """Return the tolerations; more than any setting allows if they are too long to be read."""
    return _TOLERATIONS.read(spec.tolerations, absent=[], too_long=_TOO_MANY_TOLERATIONS)


def sizes(
    meta: meta.Metadata,
    terms: Sequence[wire.NodeSelectorTerm],
    tolerations: Sequence[wire.Toleration],
    spec: wire.PodSpec,
) -> Sizes:
    """Measure a pod, except for its grace period, which is clamped wherever it counts."""
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
        tolerations=[(toleration.key, toleration.operator) for toleration in tolerations],
    )


def is_readable(pod_sizes: Sizes) -> bool:
    """Check whether the node affinity is small enough to be stored."""
    return all(
        getattr(pod_sizes, name) <= caps.TABLE[name].largest
        for name in ("affinity_terms", "affinity_expressions", "affinity_values")
    )


def labels(entries: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels, truncated to the largest number that the cap allows."""
    return _truncated(entries, caps.TABLE["labels"].largest)


def annotations(entries: Mapping[str, str]) -> Mapping[str, str]:
    """Return the annotations, truncated to the largest number; long texts of others are cut, too."""
    entries = _truncated(entries, caps.TABLE["annotations"].largest)
    if all(len(text) <= _LONGEST_TEXT for text in entries.values()):
        return entries
    return {
        key: text if key in names.WRITTEN_AT_THE_PIN else text[:_LONGEST_TEXT]
        for key, text in entries.items()
    }


def first(items: Iterable[T], name: str) -> tuple[T, ...]:
    """Return the first items of a list, as many as the largest value of the cap allows."""
    return tuple(islice(items, caps.TABLE[name].largest))


def _truncated(entries: Mapping[str, str], most: int) -> Mapping[str, str]:
    if len(entries) <= most:
        return entries
    ours = {key: text for key, text in entries.items() if key.startswith(_OURS)}
    return dict(islice(ours.items(), most)) | dict(islice(entries.items(), most))


def claims(spec: wire.PodSpec) -> tuple[str, ...]:
    """Return the names of the volume claims a pod uses, at most `_MOST_CLAIMS`."""
    claim_names = [
        volume.persistent_volume_claim.claim_name
        for volume in spec.volumes
        if volume.persistent_volume_claim
    ]
    return tuple(dict.fromkeys(claim_names[:_MOST_CLAIMS]))


def resource_claims(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[PodClaim, ...]:
    """Return the resource claims a pod uses, one more than allowed at most."""
    if not spec.resource_claims:
        return ()
    from_template = {
        claim_status.name: claim_status.resource_claim_name
        for claim_status in status.resource_claim_statuses
    }
    return tuple(
        PodClaim(
            entry=entry.name,
            claim=entry.resource_claim_name or from_template.get(entry.name, ""),
            template=entry.resource_claim_template_name,
        )
        for entry in spec.resource_claims[: asking.MOST_CLAIMS + 1]
    )
