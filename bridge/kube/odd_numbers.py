"""Numbers and timestamps of a pod that the API server accepts but we cannot represent.

They are clamped or ignored, and reported to the pod's owner.
"""

from collections.abc import Iterator
from datetime import datetime

from bridge.kube import wire
from slurmruntime.kube import meta
from slurmruntime.values import names, numbers
from slurmruntime.values.faults import Fault

_SHOWN = 80
"""How many characters of a faulty value a message quotes."""


def moment(time: datetime | None) -> datetime | None:
    """Clamp a timestamp so that adding a duration cannot overflow; None stays None."""
    return None if time is None else numbers.moment(time)


def seconds(number: int | None) -> int | None:
    """Clamp a number of seconds to what a timedelta can hold; None stays None."""
    return None if number is None else numbers.seconds(number)


def of(meta: meta.Metadata, spec: wire.PodSpec) -> Iterator[Fault]:
    """Yield a fault for each number of a pod that was clamped or ignored.

    Timestamps are not reported, because only the API server writes them.
    """
    for path, written in (
        ("spec.terminationGracePeriodSeconds", spec.termination_grace_period_seconds),
        ("spec.activeDeadlineSeconds", spec.active_deadline_seconds or 0),
        ("metadata.deletionGracePeriodSeconds", meta.deletion_grace_period_seconds),
    ):
        if (clamped := numbers.seconds(written)) != written:
            words = f"expected 0 to {numbers.LONGEST_S} seconds, found {written}: it counts as {clamped}"
            yield Fault(path, f"{words}; a DELETE with a shorter grace period ends the pod")
    for key, text in (
        (names.RANK_ANNOTATION, meta.annotations.get(names.RANK_ANNOTATION)),
        (names.JOB_ID_LABEL, meta.labels.get(names.JOB_ID_LABEL)),
    ):
        if text is not None and numbers.integer(text) is None:
            part = "labels" if key == names.JOB_ID_LABEL else "annotations"
            words = f"expected a whole number up to {numbers.MOST}, found {text[:_SHOWN]!r}"
            yield Fault(f"metadata.{part}[{key}]", f"{words}: it is ignored")
