"""Decode node selector terms: a pod's required node affinity, a volume's nodes."""

from collections.abc import Iterable

from bridge.domain.model import pods
from bridge.kube import wire


def required(affinity: wire.NodeAffinity | None) -> list[wire.NodeSelectorTerm]:
    """Return the terms of a pod's required node affinity; [] means any node."""
    if affinity is None:
        return []
    return affinity.required_during_scheduling_ignored_during_execution.node_selector_terms


def read(terms: Iterable[wire.NodeSelectorTerm]) -> tuple[pods.NodeTerm, ...]:
    """Decode alternatives."""
    return tuple(
        pods.NodeTerm(
            match_labels=_requirements(term.match_expressions),
            match_fields=_requirements(term.match_fields),
        )
        for term in terms
    )


def _requirements(wired: Iterable[wire.Requirement]) -> tuple[pods.Requirement, ...]:
    return tuple(
        pods.Requirement(key=r.key, operator=r.operator, values=tuple(r.values)) for r in wired
    )
