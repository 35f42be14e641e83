"""Nodes as both systems have them, and what the product decides for one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand
from bridge.domain.nodes import registration
from bridge.domain.nodes.actions import (
    NodeAction,
    RenewPartitions,
    SetCondition,
    SetFeatures,
)
from bridge.domain.nodes.decision import NodeFacts, NodePlan, NodeSettings
from bridge.domain.nodes.spec import Publishing
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec, Taint
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.make import placing as build
from tests.make.placing import MARK

PUBLISHING = Publishing(
    cluster=build.CLUSTER,
    node_features=("topology.kubernetes.io/*", "disk"),
    gpu_resources={"nvidia.com/gpu": "gpu:a100"},
)


SETTINGS = NodeSettings(publishing=PUBLISHING)


NO_DAEMONS = demand.total([])


TAINT = Taint(key=names.MANAGED_NODE_TAINT, value=names.SCHEDULER_NAME, effect="NoSchedule")


TAINTED: dict[str, Any] = {"taints": (TAINT,)}


NAME = SlurmNode("k1")


PARKED = SlurmNodeSpec(
    name=NAME, address="", cpus=8, memory_mib=1, features=(MARK, names.PARKED_FEATURE)
)


BUSY: dict[str, Any] = {"alloc_cpus": 2, "states": frozenset({"MIXED", "EXTERNAL"})}


def look(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    daemons: Demand = NO_DAEMONS,
    settings: NodeSettings = SETTINGS,
    **more: Any,
) -> NodePlan:
    """What is planned once the node itself was read."""
    facts = NodeFacts(
        name=NAME,
        kube_node=kube_node,
        slurm_node=slurm_node,
        is_confirmed=True,
        daemons=daemons,
        **more,
    )
    return registration.plan(facts, settings)


def decided(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    daemons: Demand = NO_DAEMONS,
    settings: NodeSettings = SETTINGS,
    **more: Any,
) -> list[NodeAction]:
    """Without what is said on the node about it: that has tests of its own."""
    actions = look(kube_node, slurm_node, daemons, settings, **more).actions
    return [action for action in actions if not isinstance(action, SetCondition)]


def told(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None, **more: Any
) -> tuple[str, str, str]:
    """Status, reason and message that the node gets."""
    said = [a for a in look(kube_node, slurm_node, **more).actions if isinstance(a, SetCondition)]
    condition = said[0].condition
    return (condition.status, condition.reason, condition.message)


def drained(reason: str, **fields: Any) -> SlurmNodeFacts:
    states = frozenset({"IDLE", "DRAIN", "EXTERNAL"}) | fields.pop("states", frozenset())
    return build.slurm_node(states=states, reason=reason, **fields)


def leaves_parking(created: SlurmNodeSpec, then: Sequence[NodeAction]) -> bool:
    """In no NodeSet when it is created; only the drained node gets their features, and then its partitions."""
    features = build.slurm_node().features
    parked, renew, unpark = then
    assert isinstance(renew, RenewPartitions)
    assert (MARK,) == renew.spare.features
    assert NAME != renew.spare.name
    return (
        (MARK, names.PARKED_FEATURE) == created.features
        and SetFeatures(slurm_node=NAME, features=(*features, names.PARKED_FEATURE)) == parked
        and SetFeatures(slurm_node=NAME, features=features) == unpark
    )


def unlabelled(**fields: Any) -> KubeNodeFacts:
    return build.kube_node(labels={names.EXTERNAL_NODE_LABEL: "false"}, **fields)


def unlabelled_as(kube_node: KubeNodeFacts) -> KubeNodeFacts:
    return replace(kube_node, labels={**kube_node.labels, names.EXTERNAL_NODE_LABEL: "false"})
