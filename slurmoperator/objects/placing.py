"""Reads which nodes a pod template allows. It is validated here, because the API server does not validate a template."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.model.affinity import INTEGER, NodeTerm, Requirement, Selector, Toleration
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.faults import Fault, Refusal

_LISTING: Final = ("In", "NotIn")
_COMPARING: Final = ("Gt", "Lt")


class _Requirement(ObjectStruct, frozen=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Reject what the API server rejects in a pod, where it would otherwise select no node."""
        values = self.values or ()
        if self.operator in _LISTING and not values:
            raise ValueError(f"operator {self.operator}: expected values")
        is_integer = len(values) == 1 and INTEGER.fullmatch(values[0]) is not None
        if self.operator in _COMPARING and not is_integer:
            raise ValueError(f"operator {self.operator}: expected one value, an integer")


class _Term(ObjectStruct, frozen=True):
    match_expressions: tuple[_Requirement, ...] | None = None
    match_fields: tuple[_Requirement, ...] | None = None

    def __post_init__(self) -> None:
        """Reject fields that Kubernetes cannot select nodes by."""
        for match_field in self.match_fields or ():
            if match_field.key != "metadata.name":
                raise ValueError(
                    f"matchFields: expected key metadata.name, found {match_field.key[:80]!r}"
                )


class _NodeSelector(ObjectStruct, frozen=True):
    node_selector_terms: tuple[_Term, ...] | None = None


class _NodeAffinity(ObjectStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: _NodeSelector | None = None


class _Affinity(ObjectStruct, frozen=True):
    node_affinity: _NodeAffinity | None = None


class _Toleration(ObjectStruct, frozen=True):
    key: str | None = None
    operator: Literal["", "Equal", "Exists"] | None = None
    value: str | None = None
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class _Spec(ObjectStruct, frozen=True):
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    tolerations: tuple[_Toleration, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConstraints:
    """The part of a pod's specification that restricts its nodes."""

    selector: Selector
    tolerations: tuple[Toleration, ...]


def placing(spec: JsonObject) -> NodeConstraints:
    """Read the constraints from a pod's specification.

    Raises:
        Refusal: Kubernetes or we do not accept a field.
    """
    try:
        constraints = msgspec.convert(spec, _Spec)
    except msgspec.ValidationError as error:
        raise Refusal(Fault("spec.template.spec", str(error))) from error
    affinity = constraints.affinity.node_affinity if constraints.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = tuple(
        NodeTerm(
            match_labels=_requirements(term.match_expressions or ()),
            match_fields=_requirements(term.match_fields or ()),
        )
        for term in (required.node_selector_terms if required else None) or ()
    )
    return NodeConstraints(
        selector=Selector(terms, constraints.node_selector or {}),
        tolerations=tuple(
            Toleration(
                key=toleration.key or "",
                operator=toleration.operator or "Equal",
                value=toleration.value or "",
                effect=toleration.effect or "",
            )
            for toleration in constraints.tolerations or ()
        ),
    )


def _requirements(requirements: Iterable[_Requirement]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(
            key=requirement.key, operator=requirement.operator, values=requirement.values or ()
        )
        for requirement in requirements
    )
