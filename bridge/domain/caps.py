"""Caps: how much of everything one pod may have. One table, checked in two places.

The webhook checks it at CREATE and refuses a pod that exceeds a cap. The extender checks it again
before each submit, because the webhook may have been away, and a gang's size may only be known from
its controller. What we write ourselves counts in neither place: a pod is judged by what its author
wrote, before and after it is handed over. What cannot be refused is bounded where it is read or
acted upon: a DELETE's grace period counts as at most `grace_s`, and nothing beyond `Cap.largest` is
kept of a pod.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from slurmruntime.values import names
from slurmruntime.values.faults import Fault

SECTION = "caps"
"""The section of the settings, and the key of a field's `Cap` in the field's metadata."""

_OURS: Final = frozenset(
    {
        names.BRIDGED_LABEL,
        names.JOB_ID_LABEL,
        names.REQUESTER_ANNOTATION,
        names.RULES_ANNOTATION,
        names.OWNER_ANNOTATION,
        *names.WRITTEN_AT_THE_PIN,
    }
)
"""Labels and annotations that only we can write: we overwrite others', or a policy refuses them."""

_OUR_TOLERATION: Final = (names.MANAGED_NODE_TAINT, "Exists")

MOST_REQUEST_FIELDS = 40
"""Of `slurmjob.slinky.slurm.net/`: more than exist."""

SETTABLE: Final = ("grace_s", "gang_size")
"""What sites differ in. The others are far above what honest pods have."""

_READ_IN_PART: Final = ("tolerations", "affinity_terms")
"""Lists that are not read if they are too long; `Cap.uncounted` stands for their length then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """One row of the table; name and default are those of the field of `Caps`."""

    path: str
    """Where the pod has it, for faults."""
    unit: str
    protects: str
    largest: int
    """The most that is kept of a pod, and that an administrator may set."""

    @property
    def uncounted(self) -> int:
        """The length of a list that is too long to be counted."""
        return self.largest + 1


def _cap(default: int, *, path: str, unit: str, protects: str, largest: int) -> Any:
    row = Cap(path=path, unit=unit, protects=protects, largest=largest)
    return field(default=default, metadata={SECTION: row})


_REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The caps in force. The fields are the table."""

    grace_s: int = _cap(
        3600,
        path="spec.terminationGracePeriodSeconds",
        unit="seconds",
        protects="the node: containers that are stopping keep it from its next job",
        largest=365 * 86400,
    )
    gang_size: int = _cap(
        2000,
        path="gang size",
        unit="pods in one gang",
        protects="the leader's time for one decision, and etcd: each pod names all nodes",
        largest=10_000,
    )
    annotations: int = _cap(
        200,
        path="metadata.annotations",
        unit="annotations",
        protects="the leaders' memory",
        largest=1000,
    )
    annotation_bytes: int = _cap(
        65_536,
        path="metadata.annotations",
        unit="bytes in all annotations",
        protects="the leaders' memory",
        largest=262_144,
    )
    labels: int = _cap(
        100,
        path="metadata.labels",
        unit="labels",
        protects="the leaders' memory, and the admission policies, which compare every label",
        largest=1000,
    )
    label_bytes: int = _cap(
        16_384,
        path="metadata.labels",
        unit="bytes in all labels",
        protects="the leaders' memory",
        largest=131_072,
    )
    affinity_terms: int = _cap(
        50,
        path=f"{_REQUIRED}.nodeSelectorTerms",
        unit="terms",
        protects="the pin, one patch that narrows each term",
        largest=500,
    )
    affinity_expressions: int = _cap(
        200,
        path=f"{_REQUIRED}.nodeSelectorTerms",
        unit="expressions in all terms",
        protects="the leader's time: each is compared with each node",
        largest=2000,
    )
    affinity_values: int = _cap(
        2000,
        path=f"{_REQUIRED}.nodeSelectorTerms",
        unit="values in all expressions",
        protects="the leaders' memory",
        largest=10_000,
    )
    host_ports: int = _cap(
        100,
        path="spec.containers[*].ports[*].hostPort",
        unit="host ports",
        protects="the leader's time: each is compared with the node's",
        largest=1000,
    )
    tolerations: int = _cap(
        50,
        path="spec.tolerations",
        unit="tolerations",
        protects="the leader's time: each is compared with each node's taints",
        largest=500,
    )
    object_bytes: int = _cap(
        524_288,
        path="metadata",
        unit="bytes of JSON in all, without managedFields",
        protects="etcd's limit per object, which the pin and the status must not reach",
        largest=1_048_576,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much one pod has of what `Caps` limits; 0 for what is not known."""

    grace_s: int = 0
    gang_size: int = 0
    annotations: int = 0
    annotation_bytes: int = 0
    labels: int = 0
    label_bytes: int = 0
    affinity_terms: int = 0
    affinity_expressions: int = 0
    affinity_values: int = 0
    host_ports: int = 0
    tolerations: int = 0
    object_bytes: int = 0


TABLE: Mapping[str, Cap] = {row.name: row.metadata[SECTION] for row in fields(Caps)}
"""Field of `Caps` -> its row."""

DEFAULT = Caps()


def measure(
    *,
    grace_s: int,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    terms: Sequence[Iterable[Sequence[str]]],
    host_ports: int,
    tolerations: Sequence[tuple[str, str]],
    gang_size: int = 0,
    object_bytes: int = 0,
) -> Sizes:
    """Measure a pod.

    Args:
        labels: all of them, ours included.
        annotations: all of them, ours included.
        terms: of each term of the required node affinity, the values of each expression.
        tolerations: the key and operator of each.
        gang_size: what its own annotations declare; 0 if they declare none.
        object_bytes: the length of its JSON, ours included; 0 if it is not known.
    """
    our_labels = {key: labels[key] for key in labels.keys() & _OURS}
    our_annotations = {key: annotations[key] for key in annotations.keys() & _OURS}
    values = [len(expression) for term in terms for expression in term]
    return Sizes(
        grace_s=grace_s,
        gang_size=gang_size,
        annotations=len(annotations) - len(our_annotations),
        annotation_bytes=_bytes(annotations) - _bytes(our_annotations),
        labels=len(labels) - len(our_labels),
        label_bytes=_bytes(labels) - _bytes(our_labels),
        affinity_terms=len(terms),
        affinity_expressions=len(values),
        affinity_values=sum(values),
        host_ports=host_ports,
        tolerations=len(tolerations) - (_OUR_TOLERATION in tolerations),
        object_bytes=max(
            0, object_bytes - _members_bytes(our_labels) - _members_bytes(our_annotations)
        ),
    )


def faults(sizes: Sizes, caps: Caps) -> Iterator[Fault]:
    """Yield a fault for each cap that is exceeded."""
    for name, row in TABLE.items():
        most, has = getattr(caps, name), getattr(sizes, name)
        if has > most:
            is_counted = has != row.uncounted or name not in _READ_IN_PART
            count = has if is_counted else f"more than {row.largest}"
            words = f"expected at most {most} {row.unit}, found {count}"
            kind = f"setting {SECTION}." if name in SETTABLE else "fixed cap "
            yield Fault(row.path, f"{words} ({kind}{name})")


def _bytes(texts: Mapping[str, str]) -> int:
    return _length("".join(texts)) + _length("".join(texts.values()))


def _members_bytes(texts: Mapping[str, str]) -> int:
    """Return the bytes that they take in an object's JSON: four quotes, a colon and a comma each."""
    return _bytes(texts) + 6 * len(texts)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
