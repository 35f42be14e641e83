"""Takes the names of users out of metrics."""

from collections.abc import Iterable, Iterator
from typing import Final

from slurmexporter.text.family import Family, Metric, Sample

LABELS: Final = frozenset({"user", "users", "userid", "username"})


def has_people(family: Family) -> bool:
    """Whether a family names users."""
    return not LABELS.isdisjoint(family.labels)


def without_people(metrics: Iterable[Metric]) -> Iterator[Metric]:
    """Yield metrics without users.

    A series about a user is left out. One about something else, which has a user among its labels, such as a
    job or the reason of a node, keeps its place, with an empty label.
    """
    for family, samples in metrics:
        if not has_people(family):
            yield family, samples
        elif family.name.endswith("_info"):
            yield family, [_nameless(family, sample) for sample in samples]
        elif others := [sample for sample in samples if sample == _nameless(family, sample)]:
            yield family, others


def _nameless(family: Family, sample: Sample) -> Sample:
    values, value = sample
    return (
        tuple(
            "" if label in LABELS else text
            for label, text in zip(family.labels, values, strict=True)
        ),
        value,
    )
