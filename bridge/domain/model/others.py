"""Pods on Slurm's nodes that Slurm did not place: whose they are, for people and for metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bridge.domain.model.pods import BoundPod

MOST_NAMESPACES = 50
"""A metric has a series for each namespace with the most such pods, and one for the rest."""

REST = "(others)"

_SHOWN = 3


def count_by_namespace(pods: Iterable[BoundPod]) -> Mapping[str, int]:
    """Count the pods by namespace."""
    counts = Counter(pod.namespace for pod in pods if not pod.is_terminal)
    most = counts.most_common(MOST_NAMESPACES)
    rest = counts.total() - sum(count for _, count in most)
    return {**dict(most), **({REST: rest} if rest else {})}


def summary(pods: Sequence[BoundPod]) -> str:
    """Name the owners of one node's pods; those with the most pods first."""
    owners = Counter(_owner(pod) for pod in pods if not pod.is_terminal)
    names = [
        owner if count == 1 else f"{owner} ({count})"
        for owner, count in sorted(owners.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    more = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _owner(pod: BoundPod) -> str:
    """Return `namespace/Kind name`; a pod without an owner goes by its own name."""
    if pod.owner is None:
        return f"{pod.namespace}/Pod {pod.name}"
    return f"{pod.namespace}/{pod.owner.kind} {pod.owner.name}"
