"""Decode Kubernetes nodes."""

import msgspec

from slurmruntime.kube.meta import Metadata, Struct
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind, read
from slurmruntime.model import nodes
from slurmruntime.values import quantities
from slurmruntime.values.ids import KubeNode


class _Spec(Struct):
    """`core/v1 NodeSpec`."""

    taints: tuple[nodes.Taint, ...] = ()
    unschedulable: bool = False


class _Address(Struct):
    """`core/v1 NodeAddress`."""

    type: str
    address: str


class _Status(Struct):
    """`core/v1 NodeStatus`."""

    allocatable: dict[str, str] = {}
    conditions: tuple[nodes.NodeCondition, ...] = ()
    addresses: list[_Address] = []


class _Node(Struct):
    """`core/v1 Node`."""

    metadata: Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_MOST_CONDITIONS = 200
_MOST_AMOUNTS = 1000
"""Conditions and resources that are read of a node: a kubelet may report any number, and has some ten."""
_STANDARD = ("cpu", "memory", "ephemeral-storage", "pods")

_node = msgspec.json.Decoder(_Node)


def node(body: Json) -> nodes.KubeNodeFacts:
    """Decode one node."""
    return read("Node", _node, _to_node, body)


NODES = ResourceKind(
    path="/api/v1/nodes",
    read=node,
    identify=lambda n: ObjectVersion(n.name, n.resource_version, n.name),
    called="node",
    api_kind="Node",
)
"""Nodes, by name."""


def _to_node(wired: _Node) -> nodes.KubeNodeFacts:
    meta, spec, status = wired.metadata, wired.spec, wired.status
    conditions = status.conditions[:_MOST_CONDITIONS]
    return nodes.KubeNodeFacts(
        name=KubeNode(meta.name),
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=meta.annotations,
        taints=spec.taints,
        is_unschedulable=spec.unschedulable,
        is_ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        is_deleting=meta.deletion_timestamp is not None,
        conditions=conditions,
        allocatable=_allocatable(status.allocatable),
        internal_ip=next((a.address for a in status.addresses if a.type == "InternalIP"), ""),
    )


def _allocatable(amounts: dict[str, str]) -> nodes.Allocatable:
    if len(amounts) > _MOST_AMOUNTS:
        amounts = {name: amounts[name] for name in _STANDARD if name in amounts}
    exact = {name: quantities.parse(text) for name, text in amounts.items()}
    nothing = quantities.parse("0")
    return nodes.Allocatable(
        milli_cpu=quantities.milli(exact.pop("cpu", nothing)),
        memory_bytes=quantities.round_up(exact.pop("memory", nothing)),
        ephemeral_storage_bytes=quantities.round_up(exact.pop("ephemeral-storage", nothing)),
        pods=quantities.round_up(exact.pop("pods", nothing)),
        extended={name: quantities.round_up(amount) for name, amount in exact.items()},
    )
