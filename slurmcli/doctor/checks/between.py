"""Check what must match on both sides: nodes, their names, and which cluster they belong to."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from bridge.domain.diagnosis import overview
from bridge.domain.model import hybrid
from bridge.domain.model.cores import agents
from bridge.domain.model.devices import exactness
from bridge.domain.model.devices.exactness import Exactness
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.nodes import state as node_state
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import names, quantities
from slurmruntime.values.findings import Check, Result, fault, not_checked, ok, warning
from slurmruntime.values.ids import ClusterId, KubeNode

_SHOWN = 5

ESCROW_SCRIPT = "slurm-bridge-escrow"
"""The name of the file, wherever a site installs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BothFacts:
    """The nodes of both sides."""

    kube_nodes: Sequence[KubeNodeFacts]
    slurm_nodes: Sequence[SlurmNodeFacts] | None
    """None if Slurm was not asked or did not answer."""
    cluster: ClusterId | None
    """Our id in Slurm; None if it may not be read."""
    gpu_resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resource → GRES."""
    milli_per_cpu: int = quantities.MILLI
    """Thousandths of a CPU of Kubernetes that one of Slurm's is."""
    hybrid: HybridRule | None = None
    """What keeps native jobs of hybrid nodes off containers that still stop; None if the settings cannot be read."""
    prologs: Sequence[str] | None = None
    """Paths of PrologSlurmctld; None if Slurm cannot report them."""
    cpu_managers: Mapping[KubeNode, str] = field(default_factory=dict)
    """The CPU manager policy of each kubelet that could be asked: `none`, `static`."""
    pins_cores: bool | None = False
    """Whether node agents are on; None if the settings cannot be read."""
    agents: Collection[KubeNode] | None = None
    """The nodes whose node agent is alive; None if its pods may not be listed."""


def _handed_over(facts: BothFacts) -> Result:
    count = sum(map(nodes.is_wanted, facts.kube_nodes))
    if not count:
        return warning(
            "no node is handed to Slurm",
            f"kubectl label node NAME {names.EXTERNAL_NODE_LABEL}=true",
        )
    return ok(f"{count} nodes are handed to Slurm")


def _unique_names(facts: BothFacts) -> Result:
    count = Counter(nodes.slurm_name(node) for node in facts.kube_nodes if nodes.is_wanted(node))
    twice = sorted(name for name, times in count.items() if times > 1)
    if twice:
        return fault(
            f"several Kubernetes nodes claim one Slurm node: {', '.join(twice)}",
            f"give each its own {names.SLURM_NODE_NAME_LABEL} label",
        )
    return ok("every node has its own Slurm name")


def _own_nodes(facts: BothFacts) -> Result:
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


def _fit_together(facts: BothFacts) -> Result:
    if facts.slurm_nodes is None:
        return not_checked("Slurm's nodes are not known")
    wrong = [
        f"{row.kube_node or row.slurm_node}: {row.mismatch}"
        for row in overview.rows(
            facts.kube_nodes, facts.slurm_nodes, milli_per_cpu=facts.milli_per_cpu
        )
        if row.mismatch
    ]
    if wrong:
        return fault(_some(wrong), "kubectl slurm nodes -o wide; kubectl describe node says more")
    return ok("the nodes of both sides match")


def _drained(facts: BothFacts) -> Result:
    if facts.slurm_nodes is None:
        return not_checked("Slurm's nodes are not known")
    ours = {nodes.slurm_name(node) for node in facts.kube_nodes if nodes.is_wanted(node)}
    closed = [
        f"{node.name} ({node.reason})"
        for node in facts.slurm_nodes
        if node.name in ours
        and node.states & {"DRAIN", "DOWN", "FAIL"}
        and not node_state.is_drained_for_pods(node)
    ]
    if closed:
        return warning(
            f"drained or down in Slurm: {_some(closed)}",
            "once repaired: scontrol update … state=resume",
        )
    return ok("no node of ours is drained or down")


def _exact(facts: BothFacts) -> Result:
    """Report where a pod may get other devices than Slurm gave it, and what is refused for that."""
    if facts.slurm_nodes is None:
        return not_checked("Slurm's nodes are not known")
    gres = {node.name: node.gres for node in facts.slurm_nodes}
    rulings = [
        (node, exactness.devices(node, gres.get(nodes.slurm_name(node)), facts.gpu_resources))
        for node in facts.kube_nodes
    ]
    refused = [
        f"{node.name}: {ruling.reason}"
        for node, ruling in rulings
        if ruling.exactness is Exactness.REFUSED
    ]
    if refused:
        return warning(
            f"devices on hybrid nodes: {_some(refused)}",
            "remove these devices from the kubelet or from gres.conf, or let pods request all of them; "
            "docs/nodes.md",
        )
    count = Counter(ruling.exactness for _, ruling in rulings if ruling.exactness)
    counts = ", ".join(f"{number} {level}" for level, number in sorted(count.items()))
    return ok(f"nodes by their devices: {counts}" if counts else "no node of ours has devices")


def _cores(facts: BothFacts) -> Result:
    """Compare the label with the kubelets' own settings."""
    shared = [node for node in facts.kube_nodes if nodes.is_hybrid(node)]
    if not shared:
        return ok("no hybrid node: only kubelets hand out cores to pods")
    label = names.CPU_MANAGER_LABEL
    for node in shared:
        has, says = facts.cpu_managers.get(node.name), node.labels.get(label)
        if has is not None and has != says:
            return (fault if has == exactness.STATIC else warning)(
                f"the CPU manager of {node.name} is {has}, its label says {says or 'nothing'}",
                f"kubectl label --overwrite node {node.name} {label}={has}",
            )
    unknown = [node.name for node in shared if label not in node.labels]
    if unknown:
        return not_checked(f"the kubelets' CPU managers could not be read: {_some(unknown)}")
    return ok("the labels of hybrid nodes name their kubelets' CPU managers")


def _pinned(facts: BothFacts) -> Result:
    """Report where pods get exactly the cores that Slurm gave them."""
    if facts.pins_cores is None:
        return not_checked("the settings cannot be read")
    if not facts.pins_cores:
        return ok("no node agents (agent.pin_cores is off): containers run on any core")
    label = names.CPU_MANAGER_LABEL
    wanted = agents.wanted(facts.kube_nodes)
    if not wanted:
        return warning(
            "agent.pin_cores is on, and no external node is labelled for an agent",
            f"kubectl label node NAME {label}={agents.NO_MANAGER}, where that is the kubelet's "
            "cpuManagerPolicy; docs/agent.md",
        )
    for name in wanted:
        if (has := facts.cpu_managers.get(name, agents.NO_MANAGER)) != agents.NO_MANAGER:
            return fault(
                f"the CPU manager of {name} is {has}: it and the node agent write the same cpusets",
                f"kubectl label --overwrite node {name} {label}={has}",
            )
    if facts.agents is None:
        return not_checked("the pods of the node agents may not be listed")
    if away := [name for name in wanted if name not in facts.agents]:
        return warning(
            f"no node agent is ready on {_some(away)}: containers run on any core there",
            f"kubectl get pods --all-namespaces -o wide -l {agents.SELECTOR}; docs/agent.md",
        )
    return ok(f"node agents pin the cores of pods on {len(wanted)} nodes")


def _held_back(facts: BothFacts) -> Result:
    """Check that native jobs wait for containers of ended jobs: slurmctld's script needs our endpoint."""
    has_script = any(path.rpartition("/")[2] == ESCROW_SCRIPT for path in facts.prologs or ())
    if facts.hybrid is None:
        return not_checked("the settings cannot be read")
    if facts.hybrid is not HybridRule.ESCROW and has_script:
        return fault(
            f"slurmctld runs {ESCROW_SCRIPT}, and nothing answers it: jobs start late",
            "set config.nodes.hybrid: escrow in the chart's values, or remove the script from slurm.conf; docs/escrow.md",
        )
    shared = [node.name for node in facts.kube_nodes if nodes.is_hybrid(node)]
    if not shared:
        return ok("no hybrid node: no native job starts beside containers")
    match facts.hybrid:
        case HybridRule.NONE:
            return fault(
                f"no pod is placed on {_some(shared)}: {hybrid.UNANSWERED}",
                "set config.nodes.hybrid in the chart's values to escrow, alternate or acceptOverlap; docs/nodes.md",
            )
        case HybridRule.ALTERNATE:
            return ok("native jobs and pods have hybrid nodes in turns")
        case HybridRule.ACCEPT_OVERLAP:
            return ok(
                "native jobs on hybrid nodes may start while containers of ended jobs still stop: accepted (nodes.hybrid)"
            )
        case HybridRule.ESCROW:
            return _asks(facts, has_script=has_script)
        case unreachable:
            assert_never(unreachable)


def _asks(facts: BothFacts, *, has_script: bool) -> Result:
    """Check that slurmctld runs the script, and waits for it."""
    if facts.prologs is None:
        return not_checked("slurmrestd cannot report PrologSlurmctld (before 26.05)")
    if not has_script:
        return fault(
            f"slurmctld does not run {ESCROW_SCRIPT}: native jobs do not wait for containers, and hybrid nodes get no pods",
            "install the script and name it as PrologSlurmctld in slurm.conf; docs/escrow.md",
        )
    if len(facts.prologs) > 1:
        return fault(
            "slurmctld runs several PrologSlurmctld and waits only for the first to end: native jobs may not wait for containers",
            f"name {ESCROW_SCRIPT} alone in slurm.conf, and the others in its setting PROLOGS; docs/escrow.md",
        )
    return ok(
        "native jobs on hybrid nodes wait for containers of ended jobs, up to the script's deadline"
    )


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{', '.join(texts[:_SHOWN])}{more}"


CHECKS: Mapping[str, Check[BothFacts]] = {
    "nodes": _handed_over,
    "node names": _unique_names,
    "whose nodes": _own_nodes,
    "nodes on both sides": _fit_together,
    "drained nodes": _drained,
    "exact devices": _exact,
    "CPU managers": _cores,
    "node agents": _pinned,
    "held native jobs": _held_back,
}
