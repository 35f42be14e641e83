"""Kubernetes' own rules for where a pod may go: node selector, required node affinity, taints and tolerations.

Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/>, "Node affinity", and
<https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from slurmruntime.model.nodes import HARD_EFFECTS, KubeNodeFacts, Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A `NodeSelectorRequirement`; its operator is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """A `NodeSelectorTerm`: all its requirements must hold; several terms are alternatives."""

    match_labels: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration; key "" with operator Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""How a cordoned node is treated,
<https://kubernetes.io/docs/reference/labels-annotations-taints/>."""


NOTHING: Mapping[str, str] = MappingProxyType({})


INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
"""What the operators Gt and Lt compare."""


class Selector:
    """A node selector and a required node affinity, to be compared with many nodes.

    Nodes that have the same values under all its keys get the same answer, so most clusters need
    few comparisons; and a comparison takes no longer if a requirement has many values.
    """

    def __init__(self, terms: Iterable[NodeTerm], selector: Mapping[str, str] = NOTHING) -> None:
        """Prepare the comparison; without terms, only the selector counts."""
        self._selector = tuple(selector.items())
        self._terms = tuple(map(_Term, terms))
        self._keys = tuple({key for term in self._terms for key in term.keys})
        self._by_name = any(term.fields for term in self._terms)
        self._answers: dict[tuple[str | None, ...], bool] = {}

    def selects(self, kube_node: KubeNodeFacts) -> bool:
        """Check whether both match the node."""
        labels = kube_node.labels
        if any(labels.get(key) != value for key, value in self._selector):
            return False
        if not self._terms:
            return True
        name = str(kube_node.name) if self._by_name else None
        alike = (name, *(labels.get(key) for key in self._keys))
        if alike not in self._answers:
            self._answers[alike] = any(term.holds(kube_node) for term in self._terms)
        return self._answers[alike]


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations off, or None."""
    tolerated_by = tuple(tolerations)
    return next(
        (
            taint
            for taint in taints
            if taint.effect in HARD_EFFECTS
            and not any(tolerates(toleration, taint) for toleration in tolerated_by)
        ),
        None,
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Check whether this one toleration tolerates this one taint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return (toleration.key, toleration.value) == (taint.key, taint.value)


def hard_taints(kube_node: KubeNodeFacts) -> tuple[Taint, ...]:
    """Return every taint that keeps new pods off; a cordon counts as the taint that Kubernetes turns it into."""
    taints = tuple(taint for taint in kube_node.taints if taint.effect in HARD_EFFECTS)
    is_tainted = any(taint.key == UNSCHEDULABLE.key for taint in taints)
    return (*taints, UNSCHEDULABLE) if kube_node.is_unschedulable and not is_tainted else taints


class _Term:
    """One term, with the values of its requirements as sets; an empty one matches no node."""

    def __init__(self, term: NodeTerm) -> None:
        self._labels = tuple((label, frozenset(label.values)) for label in term.match_labels)
        self.fields = tuple((field, frozenset(field.values)) for field in term.match_fields)
        self.keys = frozenset(match_label.key for match_label in term.match_labels)

    def holds(self, kube_node: KubeNodeFacts) -> bool:
        if not self._labels and not self.fields:
            return False
        fields = {"metadata.name": str(kube_node.name)}
        return all(_holds(*label, kube_node.labels) for label in self._labels) and all(
            _holds(*field, fields) for field in self.fields
        )


def _holds(requirement: Requirement, values: frozenset[str], labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, requirement)
        case _:
            # The API server accepts no other operator; a newer one might, and then only
            # kube-scheduler knows.
            return False


def _compares(value: str | None, requirement: Requirement) -> bool:
    texts = (value or "", *requirement.values)
    if len(texts) != 2 or not all(INTEGER.fullmatch(text) for text in texts):  # noqa: PLR2004  # two sides to compare
        return False
    label, bound = map(int, texts)
    return label > bound if requirement.operator == "Gt" else label < bound
