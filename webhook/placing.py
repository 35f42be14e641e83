"""Decode what a pod says of where it may run, tolerations and affinity, up to the length of honest ones."""

from collections.abc import Iterator, Sequence

import msgspec

from bridge.domain import caps
from bridge.domain.admission.review import PodAffinityTerm
from slurmruntime.model.affinity import Toleration
from slurmruntime.values.part import LONGEST_AFFINITY_BYTES, LONGEST_LIST_BYTES, Part, is_absent

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _Struct(msgspec.Struct, rename="camel", gc=False):
    """Base of the structs. Unknown fields are skipped without decoding."""


class _Toleration(_Struct):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class _Requirement(_Struct):
    values: list[str] | None = None


class _NodeTerm(_Struct):
    match_expressions: list[_Requirement] | None = None
    match_fields: list[_Requirement] | None = None


class _NodeSelector(_Struct):
    node_selector_terms: list[_NodeTerm] | None = None


class _Expression(_Struct):
    key: str = ""


class _Selector(_Struct):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Expression] | None = None


class _PodTerm(_Struct):
    topology_key: str = ""
    label_selector: _Selector | None = None


class _Terms(_Struct):
    required_during_scheduling_ignored_during_execution: msgspec.Raw = msgspec.Raw()
    preferred_during_scheduling_ignored_during_execution: msgspec.Raw = msgspec.Raw()


class Affinity(_Struct):
    """`core/v1 Affinity`."""

    node_affinity: _Terms = msgspec.field(default_factory=_Terms)
    pod_affinity: _Terms = msgspec.field(default_factory=_Terms)
    pod_anti_affinity: _Terms = msgspec.field(default_factory=_Terms)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_AFFINITY = "$.spec.affinity"

_tolerations: Part[list[_Toleration] | None] = Part(
    list[_Toleration], path="$.spec.tolerations", longest_bytes=LONGEST_LIST_BYTES
)
_node_selector = Part(
    _NodeSelector,
    path=f"{_AFFINITY}.nodeAffinity.{_REQUIRED}",
    longest_bytes=LONGEST_AFFINITY_BYTES,
)
_pod_terms = {
    kind: Part(
        list[_PodTerm], path=f"{_AFFINITY}.{kind}.{_REQUIRED}", longest_bytes=LONGEST_LIST_BYTES
    )
    for kind in ("podAffinity", "podAntiAffinity")
}

_TOO_MANY_TOLERATIONS = [_Toleration()] * caps.TABLE["tolerations"].uncounted
_TOO_MANY_NODE_TERMS = _NodeSelector([_NodeTerm()] * caps.TABLE["affinity_terms"].uncounted)
_TOO_MANY_POD_TERMS = [_PodTerm()]
"""What stands for lists that are too long to be read: all of these are refused."""


def tolerations(raw: msgspec.Raw) -> tuple[Toleration, ...] | None:
    """Return the tolerations; None if there is no such list.

    Raises DecodeError if they violate the schema.
    """
    read = _tolerations.read(raw, absent=None, too_long=_TOO_MANY_TOLERATIONS)
    if read is None:
        return None
    return tuple(
        Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect) for t in read
    )


def requires_nodes(affinity: Affinity) -> bool:
    """Check whether the affinity chooses nodes."""
    return not is_absent(affinity.node_affinity.required_during_scheduling_ignored_during_execution)


def node_values(affinity: Affinity) -> list[list[Sequence[str]]]:
    """Return the values of each expression of each term that chooses nodes.

    Raises DecodeError if it violates the schema.
    """
    selector = _node_selector.read(
        affinity.node_affinity.required_during_scheduling_ignored_during_execution,
        absent=_NodeSelector(),
        too_long=_TOO_MANY_NODE_TERMS,
    )
    return [
        [
            requirement.values or ()
            for requirement in (*(term.match_expressions or ()), *(term.match_fields or ()))
        ]
        for term in selector.node_selector_terms or ()
    ]


def pod_terms(affinity: Affinity) -> Iterator[PodAffinityTerm]:
    """Yield the terms that must hold about other pods.

    Raises DecodeError if they violate the schema.
    """
    yield from _required("podAffinity", affinity.pod_affinity)
    yield from _required("podAntiAffinity", affinity.pod_anti_affinity)


def preferences(affinity: Affinity) -> tuple[str, ...]:
    """Return the paths in the spec that only rank nodes."""
    kinds = {
        "nodeAffinity": affinity.node_affinity,
        "podAffinity": affinity.pod_affinity,
        "podAntiAffinity": affinity.pod_anti_affinity,
    }
    return tuple(
        f"spec.affinity.{kind}.{_PREFERRED}"
        for kind, terms in kinds.items()
        if is_set(terms.preferred_during_scheduling_ignored_during_execution)
    )


def is_set(field: msgspec.Raw) -> bool:
    """Check whether a field is there, and neither null nor an empty list."""
    return bytes(field) not in (b"", b"null", b"[]")


def _required(kind: str, terms: _Terms) -> Iterator[PodAffinityTerm]:
    required = terms.required_during_scheduling_ignored_during_execution
    for term in _pod_terms[kind].read(required, absent=[], too_long=_TOO_MANY_POD_TERMS):
        selector = term.label_selector or _Selector()
        expressions = (expression.key for expression in selector.match_expressions or ())
        keys = frozenset((*(selector.match_labels or ()), *expressions))
        yield PodAffinityTerm(kind=kind, topology_key=term.topology_key, labels=keys)
