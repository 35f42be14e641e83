"""Decode Kubernetes JSON into domain values, or raise `Malformed` with the object and the path.

No other module reads Kubernetes JSON.
"""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import msgspec

from bridge.domain import numbers, oddities, quantities
from bridge.domain.ids import KubeNode, PodUid
from bridge.domain.model import affinity, demand, nodes, objects, pods
from bridge.domain.model.demand import Demand
from bridge.domain.model.objects import KubeObject
from bridge.kube import bounds, containers, odd_numbers, wire
from bridge.kube.claims import nesting
from bridge.kube.errors import Malformed

T = TypeVar("T")
W = TypeVar("W")
Json = bytes | msgspec.Raw

MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
"""Set by the kubelet on the mirror pod of a static pod."""

ANY_IP = "0.0.0.0"  # noqa: S104  # not a listener: a host port without an IP is taken on all IPs

_pod = msgspec.json.Decoder(wire.Pod)
_bound_pod = msgspec.json.Decoder(wire.BoundPod)
_node = msgspec.json.Decoder(wire.Node)
_identified = msgspec.json.Decoder(wire.Identified)
_any_object = msgspec.json.Decoder(wire.AnyObject)
_page = msgspec.json.Decoder(wire.Page)
_event = msgspec.json.Decoder(wire.WatchEvent)
_bookmark = msgspec.json.Decoder(wire.Bookmark)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind(Generic[T]):
    """A kind of object that a reflector lists and watches, and how to decode it."""

    path: str
    """Path of the collection."""
    read: Callable[[Json], T]
    key: Callable[[T], str]
    """Return the object's key in the cache."""
    version: Callable[[T], str]
    """Return the object's resourceVersion: opaque, compared for equality only."""
    called: oddities.Kind = "object"
    """Name of the kind in logs and metrics about objects that are set aside."""
    api_kind: str = ""
    """`Pod` or `Node` if Events may report an object that is set aside; else ""."""
    name: Callable[[T], str] | None = None
    """Return a name for people; None: use the key."""


class Change(enum.Enum):
    """Type of a watch event.

    Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks>.
    """

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """No change; only the version advances."""
    ERROR = "ERROR"
    """The object is a `Status`."""


def pod(body: Json) -> pods.Pod:
    """Decode one pod, with everything that decisions about it need."""
    return _read("Pod", _pod, _to_pod, body)


def bound_pod(body: Json) -> pods.BoundPod:
    """Decode one bound pod, with only what the accounting of its node needs."""
    return _read("Pod", _bound_pod, _to_bound_pod, body)


def node(body: Json) -> nodes.KubeNodeFacts:
    """Decode one node."""
    return _read("Node", _node, _to_node, body)


def kube_object(body: Json, api_version: str = "", kind: str = "") -> KubeObject:
    """Decode the metadata of any object, and its spec and status if they were requested."""
    wired = decoded(_any_object, "object", body)
    meta = wired.metadata
    return KubeObject(
        api_version=api_version,
        kind=kind,
        spec=wired.spec,
        status=wired.status,
        uid=meta.uid,
        name=meta.name,
        namespace=meta.namespace,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=meta.annotations,
        owner=_owner(meta),
        is_deleting=meta.deletion_timestamp is not None,
        size_bytes=len(bytes(body)),
    )


PODS = ResourceKind(
    path="/api/v1/pods",
    read=pod,
    key=lambda p: p.uid,
    version=lambda p: p.resource_version,
    called="pod",
    api_kind="Pod",
    name=lambda p: p.full_name,
)
"""Whole pods, by uid; the reflector selects `spec.schedulerName=slurm-bridge-scheduler`."""
BOUND_PODS = ResourceKind(
    path="/api/v1/pods",
    read=bound_pod,
    key=lambda p: p.uid,
    version=lambda p: p.resource_version,
    called="other_pod",
    name=lambda p: f"{p.namespace}/{p.name}",
)
"""Bound pods, reduced to what the accounting of nodes needs, by uid.

Select them with `spec.nodeName!=`, and exclude our pods: `PODS` has them.
"""
NODES = ResourceKind(
    path="/api/v1/nodes",
    read=node,
    key=lambda n: n.name,
    version=lambda n: n.resource_version,
    called="node",
    api_kind="Node",
)
"""Nodes, by name."""


def page(path: str, body: bytes) -> wire.Page:
    """Split a page of a list into undecoded objects, so that the event loop can run in between."""
    return decoded(_page, f"list of {path}", body, cuts=True)


def event(path: str, line: bytes) -> tuple[Change, msgspec.Raw]:
    """Split a watch event into the type of change and the undecoded object."""
    happened = decoded(_event, f"watch event of {path}", line, cuts=True)
    try:
        return Change(happened.type), happened.object
    except ValueError as error:
        raise malformed(f"watch event of {path}", error) from error


def bookmark(path: str, body: msgspec.Raw) -> str:
    """Return the version in a bookmark."""
    return decoded(_bookmark, f"bookmark of {path}", body).metadata.resource_version


def identity(body: Json) -> wire.Identity:
    """Decode only the identity of an object; for objects that cannot be decoded otherwise."""
    return decoded(_identified, "object", body).metadata


def decoded(decoder: msgspec.json.Decoder[W], what: str, body: Json, *, cuts: bool = False) -> W:
    """Decode JSON; cuts: leave out what is nested too deep, rather than give up.

    Raises:
        Malformed: it violates the schema; the message names the object and the path.
    """
    try:
        return nesting.decode(decoder, body) if cuts else decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise malformed(f"{what} {_name_in(body)}".strip(), error) from error


def malformed(what: str, error: Exception) -> Malformed:
    """Return the error for a response that cannot be decoded."""
    return Malformed("READ", what, reason="Malformed", message=str(error))


def _name_in(body: Json) -> str:
    try:
        found = _identified.decode(body).metadata
    except (msgspec.DecodeError, RecursionError):
        return ""
    return f"{found.namespace}/{found.name}" if found.namespace else found.name


def _read(
    what: str, decoder: msgspec.json.Decoder[W], translate: Callable[[W], T], body: Json
) -> T:
    wired = decoded(decoder, what, body)
    try:
        return translate(wired)
    except (ValueError, ArithmeticError) as error:  # an invalid quantity
        raise malformed(f"{what} {_name_in(body)}", error) from error


def _to_pod(wired: wire.Pod) -> pods.Pod:
    meta, spec, status = wired.metadata, wired.spec, wired.status
    affinity = spec.affinity.node_affinity if spec.affinity else None
    terms = _wired_terms(affinity)
    sizes = bounds.sizes(meta, terms, spec)
    return pods.Pod(
        uid=PodUid(meta.uid),
        namespace=meta.namespace,
        name=meta.name,
        resource_version=meta.resource_version,
        created_at=numbers.moment(meta.creation_timestamp),
        labels=bounds.labels(meta.labels),
        annotations=bounds.annotations(meta.annotations),
        owner=_owner(meta),
        gates=tuple([gate.name for gate in spec.scheduling_gates]),
        finalizers=tuple(meta.finalizers),
        scheduler_name=spec.scheduler_name,
        priority_class=spec.priority_class_name,
        scheduling_group=spec.scheduling_group.pod_group_name if spec.scheduling_group else "",
        demand=_demand(spec),
        node_selector=spec.node_selector,
        node_terms=node_terms(terms) if bounds.is_readable(sizes) else (affinity.NodeTerm(),),
        has_affinity=spec.affinity is not None,
        has_node_affinity=affinity is not None,
        tolerations=bounds.first(_tolerations(spec.tolerations), "tolerations"),
        host_ports=bounds.first(_host_ports(spec), "host_ports"),
        claims=bounds.claims(spec),
        resource_claims=bounds.resource_claims(spec, status),
        kube_node=KubeNode(spec.node_name) if spec.node_name else None,
        phase=status.phase,
        reason=status.reason,
        start_time=odd_numbers.moment(status.start_time),
        deadline_s=odd_numbers.seconds(spec.active_deadline_seconds),
        grace_s=numbers.seconds(spec.termination_grace_period_seconds),
        restart_policy=spec.restart_policy,
        deletion_at=odd_numbers.moment(meta.deletion_timestamp),
        deletion_grace_s=numbers.seconds(meta.deletion_grace_period_seconds),
        containers=containers.read(spec, status),
        conditions=tuple(
            [
                pods.Condition(type=c.type, status=c.status, reason=c.reason, message=c.message)
                for c in status.conditions
            ]
        ),
        sizes=sizes,
        oddities=tuple(odd_numbers.of(meta, spec)),
    )


def _to_bound_pod(wired: wire.BoundPod) -> pods.BoundPod:
    meta, spec = wired.metadata, wired.spec
    owner = _owner(meta)
    return pods.BoundPod(
        uid=PodUid(meta.uid),
        namespace=meta.namespace,
        name=meta.name,
        resource_version=meta.resource_version,
        kube_node=KubeNode(spec.node_name),
        owner=owner,
        demand=_demand(spec),
        host_ports=_host_ports(spec),
        is_deleting=meta.deletion_timestamp is not None,
        is_terminal=wired.status.phase in (pods.Phase.SUCCEEDED, pods.Phase.FAILED),
        is_of_the_node=MIRROR_POD_ANNOTATION in meta.annotations
        or (owner is not None and owner.kind == "DaemonSet" and owner.api_version == "apps/v1"),
    )


def _to_node(wired: wire.Node) -> nodes.KubeNodeFacts:
    meta, spec, status = wired.metadata, wired.spec, wired.status
    return nodes.KubeNodeFacts(
        name=KubeNode(meta.name),
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=meta.annotations,
        taints=tuple(nodes.Taint(key=t.key, value=t.value, effect=t.effect) for t in spec.taints),
        is_unschedulable=spec.unschedulable,
        is_ready=any(c.type == "Ready" and c.status == "True" for c in status.conditions),
        is_deleting=meta.deletion_timestamp is not None,
        conditions=tuple(
            nodes.NodeCondition(type=c.type, status=c.status, reason=c.reason, message=c.message)
            for c in status.conditions
        ),
        allocatable=_allocatable(status.allocatable),
        internal_ip=next((a.address for a in status.addresses if a.type == "InternalIP"), ""),
    )


def _owner(meta: wire.Metadata) -> objects.Owner | None:
    for reference in meta.owner_references:
        if reference.controller:
            return objects.Owner(
                api_version=reference.api_version,
                kind=reference.kind,
                name=reference.name,
                uid=reference.uid,
            )
    return None


def _demand(spec: wire.PodSpec | wire.BoundPodSpec) -> Demand:
    return _demand_of(
        tuple([(*_written(c.resources), False) for c in spec.containers]),
        tuple([(*_written(c.resources), containers.is_sidecar(c)) for c in spec.init_containers]),
        tuple(spec.overhead.items()),
        (*_written(spec.resources), False) if spec.resources else None,
    )


_Amounts = tuple[tuple[str, str], ...]
_Container = tuple[_Amounts, _Amounts, bool]


def _written(resources: wire.Resources) -> tuple[_Amounts, _Amounts]:
    return tuple(resources.requests.items()), tuple(resources.limits.items())


@lru_cache(maxsize=1024)
def _demand_of(
    containers: tuple[_Container, ...],
    init_containers: tuple[_Container, ...],
    overhead: _Amounts,
    pod: _Container | None,
) -> Demand:
    """Return a pod's demand; cached because most pod events repeat a specification."""
    return demand.of(
        map(_resources, containers),
        map(_resources, init_containers),
        dict(overhead),
        _resources(pod) if pod else None,
    )


def _resources(container: _Container) -> demand.Resources:
    requests, limits, is_sidecar = container
    return demand.Resources(dict(requests), dict(limits), is_sidecar)


def _wired_terms(affinity: wire.NodeAffinity | None) -> list[wire.NodeSelectorTerm]:
    if affinity is None:
        return []
    return affinity.required_during_scheduling_ignored_during_execution.node_selector_terms


def node_terms(terms: Iterable[wire.NodeSelectorTerm]) -> tuple[affinity.NodeTerm, ...]:
    """Decode alternatives: a pod's required node affinity, a volume's nodes."""
    return tuple(
        affinity.NodeTerm(
            match_labels=_requirements(term.match_expressions),
            match_fields=_requirements(term.match_fields),
        )
        for term in terms
    )


def _requirements(wired: Iterable[wire.Requirement]) -> tuple[affinity.Requirement, ...]:
    return tuple(
        affinity.Requirement(key=r.key, operator=r.operator, values=tuple(r.values)) for r in wired
    )


def _tolerations(wired: Iterable[wire.Toleration]) -> tuple[affinity.Toleration, ...]:
    return tuple(
        [
            affinity.Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
            for t in wired
        ]
    )


def _host_ports(spec: wire.PodSpec | wire.BoundPodSpec) -> tuple[tuple[str, int, str], ...]:
    """Return the node's ports a running pod takes, counted as kube-scheduler's NodePorts does."""
    return tuple(
        [
            (port.protocol, port.host_port, port.host_ip or ANY_IP)
            for container in (
                *filter(containers.is_sidecar, spec.init_containers),
                *spec.containers,
            )
            for port in container.ports
            if port.host_port
        ]
    )


def _allocatable(amounts: dict[str, str]) -> nodes.Allocatable:
    exact = {name: quantities.parse(text) for name, text in amounts.items()}
    nothing = quantities.parse("0")
    return nodes.Allocatable(
        milli_cpu=quantities.milli(exact.pop("cpu", nothing)),
        memory_bytes=quantities.whole(exact.pop("memory", nothing)),
        ephemeral_storage_bytes=quantities.whole(exact.pop("ephemeral-storage", nothing)),
        pods=quantities.whole(exact.pop("pods", nothing)),
        extended={name: quantities.whole(amount) for name, amount in exact.items()},
    )
