"""The extender protocol's JSON, as kube-scheduler uses it.

The upstream types (`k8s.io/kube-scheduler/extender/v1`) have no json tags: keys are Go field names;
unset pointers and maps are null. kube-scheduler ignores the body unless the status is 200, so error
texts go into `Error` of a 200.
"""

from collections.abc import Mapping, Sequence

import msgspec

from bridge.domain.admission.binding import Candidate


class MalformedRequest(ValueError):
    """The body is not an extender request; the message says what is wrong."""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletionTimestamp: str | None = None  # noqa: N815  # the API's spelling


class _Gate(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    schedulingGates: list[_Gate] | None = None  # noqa: N815  # the API's spelling


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _FilterArgs(msgspec.Struct):
    Pod: _Pod
    NodeNames: list[str] | None = None
    Nodes: msgspec.Raw | None = None


class BindingArgs(msgspec.Struct):
    """`ExtenderBindingArgs`: bind this pod, of this uid, to this node."""

    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised for invalid JSON, JSON of another shape, invalid UTF-8, or too deep nesting."""

_filter_args = msgspec.json.Decoder(_FilterArgs)
_binding_args = msgspec.json.Decoder(BindingArgs)


def filter_args(body: bytes) -> tuple[Candidate, tuple[str, ...]]:
    """Decode an `ExtenderArgs` sent with `nodeCacheCapable: true`: pod and remaining node names.

    Raises MalformedRequest if it is not one.
    """
    try:
        args = _filter_args.decode(body)
    except _UNREADABLE as error:
        raise MalformedRequest(f"not an ExtenderArgs: {error}") from error
    if args.NodeNames is None:
        raise MalformedRequest(
            "NodeNames is missing: the extender must be configured with nodeCacheCapable: true"
        )
    meta = args.Pod.metadata
    return Candidate(
        full_name=f"{meta.namespace}/{meta.name}",
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        gates=tuple(gate.name for gate in args.Pod.spec.schedulingGates or ()),
    ), tuple(args.NodeNames)


def binding_args(body: bytes) -> BindingArgs:
    """Decode an `ExtenderBindingArgs`.

    Raises MalformedRequest if it is not one, or a field is empty.
    """
    try:
        args = _binding_args.decode(body)
    except _UNREADABLE as error:
        raise MalformedRequest(f"not an ExtenderBindingArgs: {error}") from error
    empty = [name for name in args.__struct_fields__ if not getattr(args, name)]
    if empty:
        raise MalformedRequest(f"not an ExtenderBindingArgs: empty {', '.join(empty)}")
    return args


def filter_result(nodes: Sequence[str], refused: Mapping[str, str], error: str = "") -> bytes:
    """Encode an `ExtenderFilterResult`.

    Refused nodes are *unresolvable*, so preemption never considers them.
    """
    return msgspec.json.encode(
        {
            "Nodes": None,
            "NodeNames": list(nodes),
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": dict(refused),
            "Error": error,
        }
    )


def binding_result(error: str = "") -> bytes:
    """Encode an `ExtenderBindingResult`; the error is "" only after the API server has answered 201."""
    return msgspec.json.encode({"Error": error})
