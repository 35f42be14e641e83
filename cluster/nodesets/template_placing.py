"""Read where a pod of somebody's template may go, by Kubernetes' own rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from bridge.domain.model.pods import NodeTerm, Toleration
from bridge.kube import decode, wire
from bridge.kube.errors import Malformed


class _Spec(wire.Struct):
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: wire.Affinity | None = None
    tolerations: tuple[wire.Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacing:
    """The part of a pod's specification that limits its nodes."""

    node_selector: Mapping[str, str]
    node_terms: tuple[NodeTerm, ...]
    tolerations: tuple[Toleration, ...]


def placing(spec: Mapping[str, Any]) -> PodPlacing:
    """Read it from a specification that no API server has judged yet; nulls are the same as nothing.

    Raises:
        Malformed: a field has another type than Kubernetes wants.
    """
    given = {key: each for key, each in spec.items() if each is not None}
    try:
        wired = msgspec.convert(given, _Spec)
    except msgspec.ValidationError as error:
        raise Malformed("GET", "spec", message=str(error)) from error
    affinity = wired.affinity.node_affinity if wired.affinity else None
    terms = (
        affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
        if affinity
        else ()
    )
    return PodPlacing(
        node_selector=wired.node_selector,
        node_terms=decode.node_terms(terms),
        tolerations=tuple(
            Toleration(key=each.key, operator=each.operator, value=each.value, effect=each.effect)
            for each in wired.tolerations
        ),
    )
