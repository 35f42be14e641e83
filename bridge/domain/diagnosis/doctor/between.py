"""Check what must match on both sides: nodes, their names, and which cluster they belong to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.domain import names
from bridge.domain.diagnosis import overview
from bridge.domain.diagnosis.doctor.findings import Check, Said, fault, not_checked, ok, warning
from bridge.domain.ids import ClusterId
from bridge.domain.model import nodes
from bridge.domain.model.nodes import KubeNodeFacts, SlurmNodeFacts

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BothFacts:
    """The nodes of both sides."""

    kube_nodes: Sequence[KubeNodeFacts]
    slurm_nodes: Sequence[SlurmNodeFacts] | None
    """None if Slurm was not asked or did not answer."""
    cluster: ClusterId | None
    """Our id in Slurm; None if it may not be read."""


def _handed_over(facts: BothFacts) -> Said:
    count = sum(map(nodes.is_wanted, facts.kube_nodes))
    if not count:
        return warning(
            "no node is handed to Slurm",
            f"kubectl label node NAME {names.EXTERNAL_NODE_LABEL}=true",
        )
    return ok(f"{count} nodes are handed to Slurm")


def _one_name_each(facts: BothFacts) -> Said:
    count = Counter(nodes.slurm_name(node) for node in facts.kube_nodes if nodes.is_wanted(node))
    twice = sorted(name for name, times in count.items() if times > 1)
    if twice:
        return fault(
            f"several Kubernetes nodes claim one Slurm node: {', '.join(twice)}",
            f"give each its own {names.SLURM_NODE_NAME_LABEL} label",
        )
    return ok("every node has its own Slurm name")


def _own_nodes(facts: BothFacts) -> Said:
    if facts.slurm_nodes is None or facts.cluster is None:
        return not_checked("Slurm's nodes or this cluster's id are not known")
    ours = {nodes.slurm_name(node) for node in facts.kube_nodes if nodes.is_wanted(node)}
    mark = nodes.cluster_feature(facts.cluster)
    others = [
        node.name
        for node in facts.slurm_nodes
        if node.name in ours
        and mark not in node.features
        and any(feature.startswith(names.CLUSTER_FEATURE) for feature in node.features)
    ]
    if others:
        return fault(
            f"another cluster registered these names in Slurm: {_some(others)}",
            "check that this is the right Slurm (slurm.url), or give the nodes other names "
            f"({names.SLURM_NODE_NAME_LABEL})",
        )
    return ok("no other cluster has our nodes' names")


def _fit_together(facts: BothFacts) -> Said:
    if facts.slurm_nodes is None:
        return not_checked("Slurm's nodes are not known")
    wrong = [
        f"{row.kube_node or row.slurm_node}: {row.mismatch}"
        for row in overview.rows(facts.kube_nodes, facts.slurm_nodes)
        if row.mismatch
    ]
    if wrong:
        return fault(_some(wrong), "kubectl slurm nodes -o wide; kubectl describe node says more")
    return ok("the nodes of both sides match")


def _drained(facts: BothFacts) -> Said:
    if facts.slurm_nodes is None:
        return not_checked("Slurm's nodes are not known")
    ours = {nodes.slurm_name(node) for node in facts.kube_nodes if nodes.is_wanted(node)}
    closed = [
        f"{node.name} ({node.reason})"
        for node in facts.slurm_nodes
        if node.name in ours and node.states & {"DRAIN", "DOWN", "FAIL"}
    ]
    if closed:
        return warning(
            f"drained or down in Slurm: {_some(closed)}",
            "once repaired: scontrol update … state=resume",
        )
    return ok("no node of ours is drained or down")


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{', '.join(texts[:_SHOWN])}{more}"


CHECKS: Sequence[Check[BothFacts]] = (
    Check("nodes", _handed_over),
    Check("node names", _one_name_each),
    Check("whose nodes", _own_nodes),
    Check("nodes on both sides", _fit_together),
    Check("drained nodes", _drained),
)
