"""Numbers and moments of a pod that the API server takes and we cannot: what is made of them, and what its owner is told."""

from collections.abc import Iterator
from datetime import datetime

from bridge.domain import names, numbers
from bridge.domain.faults import Fault
from bridge.kube import wire

_SHOWN = 80
"""Characters of a faulty value that are shown."""


def moment(told: datetime | None) -> datetime | None:
    """Return a moment that spans of time may be added to; None stays None."""
    return None if told is None else numbers.moment(told)


def seconds(told: int | None) -> int | None:
    """Return a number of seconds that a span of time can be made of; None stays None."""
    return None if told is None else numbers.seconds(told)


def of(meta: wire.Metadata, spec: wire.PodSpec) -> Iterator[Fault]:
    """Say what of a pod was not taken as it stands; of moments nothing, as only the API server writes those."""
    for path, told in (
        ("spec.terminationGracePeriodSeconds", spec.termination_grace_period_seconds),
        ("spec.activeDeadlineSeconds", spec.active_deadline_seconds or 0),
        ("metadata.deletionGracePeriodSeconds", meta.deletion_grace_period_seconds),
    ):
        if (taken := numbers.seconds(told)) != told:
            words = f"expected 0 to {numbers.LONGEST_S} seconds, found {told}: it counts as {taken}"
            yield Fault(path, f"{words}; a DELETE with a shorter grace period ends the pod")
    for key, found in (
        (names.RANK_ANNOTATION, meta.annotations.get(names.RANK_ANNOTATION)),
        (names.JOB_ID_LABEL, meta.labels.get(names.JOB_ID_LABEL)),
    ):
        if found is not None and numbers.whole(found) is None:
            part = "labels" if key == names.JOB_ID_LABEL else "annotations"
            words = f"expected a whole number up to {numbers.MOST}, found {found[:_SHOWN]!r}"
            yield Fault(f"metadata.{part}[{key}]", f"{words}: it counts for nothing")
