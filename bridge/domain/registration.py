"""Nodes in step: which Kubernetes nodes are external nodes of Slurm, how big they are, and when they take no new jobs.

Level-triggered and one step at a time: `decide` looks at one node of both worlds and says what to do now; what follows a
deletion or a creation is decided at the next look. Only Slurm nodes with this cluster's mark are ever touched, and a
drain is only taken back if it was ours.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bridge.domain import demand, names, nodes, quantities
from bridge.domain.demand import Demand
from bridge.domain.ids import ClusterId, KubeNode, SlurmNode
from bridge.domain.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec, Taint
from bridge.domain.restore import Hold

REASON_PREFIX = "slurm-bridge: "
"""How a drain's reason begins if the drain is ours."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:/-]+")
_BUSY_STATES = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the administrator has set."""

    cluster: ClusterId
    scheduler_name: str = names.SCHEDULER_NAME
    node_features: tuple[str, ...] = ()
    """Label keys to publish as features; `*` and `?` match."""
    gpu_resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resource → GRES (`nvidia.com/gpu` → `gpu`, or with its type `gpu:a100`)."""
    taint_effect: str = "NoSchedule"
    """"" for no taint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an external node; one of that name may be there already."""

    spec: SlurmNodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a Slurm node; Slurm refuses while jobs run there, then it is tried again at the next look."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Let running jobs finish and start no others."""

    slurm_node: SlurmNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain:
    """Take our own drain back."""

    slurm_node: SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeatures:
    """Replace a Slurm node's features, available and active ones."""

    slurm_node: SlurmNode
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAddress:
    """Replace a Slurm node's NodeAddr."""

    slurm_node: SlurmNode
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTaint:
    """Put our taint on the Kubernetes node, or replace one with the same key."""

    kube_node: KubeNode
    taint: Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTaint:
    """Take our taint off the Kubernetes node."""

    kube_node: KubeNode
    key: str = names.MANAGED_NODE_TAINT


NodeAction = Create | Delete | Drain | Undrain | SetFeatures | SetAddress | SetTaint | RemoveTaint


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision:
    """What to do for one node, in order, and why in one sentence."""

    actions: tuple[NodeAction, ...]
    reason: str
    is_settled: bool = True
    """False: it waits for the node's jobs, whose end nobody announces."""


def is_wanted(kube_node: KubeNodeFacts | None) -> bool:
    """Whether an administrator wants this node in Slurm: labelled, with whatever value but "false"."""
    return (
        kube_node is not None
        and not kube_node.is_deleting
        and kube_node.labels.get(names.EXTERNAL_NODE_LABEL, "false") != "false"
    )


def decide(
    kube_node: KubeNodeFacts | None,
    daemons: Demand,
    slurm_node: SlurmNodeFacts | None,
    settings: Settings,
    *,
    hold: Hold = Hold.HELD,
) -> NodeDecision:
    """Say what to do for one node.

    Args:
        kube_node: the Kubernetes node; None: there is none behind this Slurm node.
        daemons: what the pods that belong to the node ask for together (DaemonSets', static ones; `demand.total`).
        slurm_node: Slurm's node of that name (`nodes.slurm_name`); None: Slurm has none.
        settings: the administrator's.
        hold: whether Slurm holds the node for the pods that run there.
    """
    if slurm_node and nodes.cluster_feature(settings.cluster) not in slurm_node.features:
        return NodeDecision(
            actions=tuple(_untaint(kube_node)),
            reason=f"Slurm node {slurm_node.name} is not this cluster's: left alone",
        )
    if kube_node is None or not is_wanted(kube_node):
        return _take_out(kube_node, slurm_node)
    if problem := _problem(kube_node):
        return NodeDecision(actions=(), reason=problem)
    wanted = spec(kube_node, daemons, settings)
    taint = tuple(_taint(kube_node, settings))
    if slurm_node is None:
        if problem := _missing(wanted):
            return NodeDecision(actions=taint, reason=problem)
        # The taint comes first: nobody else is to use what Slurm is about to hand out.
        drain = tuple(_drain(wanted.name, _unheld(hold) or _unavailable(kube_node)))
        return NodeDecision(
            actions=(*taint, Create(spec=wanted), *drain), reason="labelled, not in Slurm yet"
        )
    if hold is Hold.HELD:
        change = _keep_in_step(kube_node, slurm_node, wanted)
    else:
        change = _keep_for_pods(slurm_node, hold)
    return replace(change, actions=(*taint, *change.actions))


def spec(kube_node: KubeNodeFacts, daemons: Demand, settings: Settings) -> SlurmNodeSpec:
    """Describe the node as Slurm shall see it: what is left beside the pods that belong to it."""
    allocatable = kube_node.allocatable
    left = {
        name: count - daemons.extended.get(name, 0) for name, count in allocatable.extended.items()
    }
    kinds = demand.gres(
        {name: count for name, count in left.items() if count > 0}, settings.gpu_resources
    )
    # Slurm takes one kind with its files for a node without slurmd (a second one: "Invalid argument").
    gres, gres_conf = _gres(*min(kinds.items())) if kinds else ("", "")
    return SlurmNodeSpec(
        name=nodes.slurm_name(kube_node),
        address=kube_node.internal_ip,
        cpus=max(0, allocatable.milli_cpu - daemons.milli_cpu) // 1000,
        memory_mib=max(0, allocatable.memory_bytes - daemons.memory_bytes) // quantities.MIB,
        features=tuple(dict.fromkeys(_features(kube_node, settings))),
        gres=gres,
        gres_conf=gres_conf,
        topology=kube_node.annotations.get(names.TOPOLOGY_ANNOTATION, ""),
    )


def _take_out(kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None) -> NodeDecision:
    """Running jobs finish first; the taint stays until Slurm has let go."""
    if slurm_node is None:
        return NodeDecision(actions=tuple(_untaint(kube_node)), reason="not wanted, not in Slurm")
    why = "no longer wanted" if kube_node else "gone from Kubernetes"
    return _replace(slurm_node, why)


def _keep_in_step(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec
) -> NodeDecision:
    name = slurm_node.name
    why = _unavailable(kube_node)
    # What others have taken out of service takes no jobs as it is; made anew it would.
    if not _is_out_of_service_by_others(slurm_node):
        if shrunk := _must_shrink(slurm_node, wanted):
            return _replace(slurm_node, shrunk)
        if not why and not _is_busy(slurm_node) and (grown := _may_grow(slurm_node, wanted)):
            return _replace(slurm_node, grown)
    actions: list[NodeAction] = []
    reasons: list[str] = []
    if set(slurm_node.features) != set(wanted.features):
        actions.append(SetFeatures(slurm_node=name, features=wanted.features))
        reasons.append("its features changed")
    if wanted.address and slurm_node.address != wanted.address:
        actions.append(SetAddress(slurm_node=name, address=wanted.address))
        reasons.append("its address changed")
    if why and "DRAIN" not in slurm_node.states:
        actions.extend(_drain(name, why))
        reasons.append(why)
    if not why and _is_our_drain(slurm_node):
        actions.append(Undrain(slurm_node=name))
        reasons.append("available again")
    return NodeDecision(actions=tuple(actions), reason=", ".join(reasons) or "in step")


def _keep_for_pods(slurm_node: SlurmNodeFacts, hold: Hold) -> NodeDecision:
    """Pods run there whose placeholders Slurm has forgotten: no stranger starts before these do, cordoned or not."""
    actions: tuple[NodeAction, ...] = ()
    reason = "Slurm is to say more of the placeholders of its pods"
    if hold is Hold.MISSING:
        reason = _unheld(hold)
        if "DRAIN" not in slurm_node.states:
            actions = tuple(_drain(slurm_node.name, reason))
    elif hold is Hold.RESTORING:
        reason = "placeholders of its pods are to start there"
        if _is_our_drain(slurm_node):
            actions = (Undrain(slurm_node=slurm_node.name),)
    return NodeDecision(actions=actions, reason=reason, is_settled=False)


def _unheld(hold: Hold) -> str:
    return "pods run here whose jobs Slurm has lost" if hold is Hold.MISSING else ""


def _replace(slurm_node: SlurmNodeFacts, why: str) -> NodeDecision:
    """What Slurm cannot change on a node: drain, delete when idle; the next look creates it anew if it is wanted."""
    drain = () if "DRAIN" in slurm_node.states else tuple(_drain(slurm_node.name, why))
    if _is_busy(slurm_node):
        reason = f"{why}, its jobs finish first"
        return NodeDecision(actions=drain, reason=reason, is_settled=False)
    return NodeDecision(actions=(*drain, Delete(slurm_node=slurm_node.name)), reason=why)


def _drain(slurm_node: SlurmNode, why: str) -> Iterator[Drain]:
    if why:
        yield Drain(slurm_node=slurm_node, reason=REASON_PREFIX + why)


def _must_shrink(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Why Slurm must stop handing the node out as it is; "" if it need not."""
    if slurm_node.cpus > wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if slurm_node.memory_mib > wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    if _plain_gres(slurm_node.gres) != wanted.gres:
        return f"Slurm has GRES {slurm_node.gres!r}, Kubernetes has {wanted.gres!r}"
    if _partition_features(slurm_node.features) != _partition_features(wanted.features):
        # Partitions made of a NodeSet do not follow a live change of features.
        return "its partitions changed"
    return ""


def _may_grow(slurm_node: SlurmNodeFacts, wanted: SlurmNodeSpec) -> str:
    """Why an idle node is better made anew. Not worth a drain: a DaemonSet's pod that is being replaced looks alike."""
    if "NOT_RESPONDING" in slurm_node.states:
        return "Slurm tried to reach a slurmd, and nothing else clears NOT_RESPONDING"
    if slurm_node.cpus < wanted.cpus:
        return f"Slurm has {slurm_node.cpus} CPUs, Kubernetes has {wanted.cpus} left"
    if slurm_node.memory_mib < wanted.memory_mib:
        return f"Slurm has {slurm_node.memory_mib} MiB, Kubernetes has {wanted.memory_mib} left"
    return ""


def _unavailable(kube_node: KubeNodeFacts) -> str:
    if kube_node.is_unschedulable:
        return "cordoned in Kubernetes"
    return "" if kube_node.is_ready else "not ready in Kubernetes"


def _problem(kube_node: KubeNodeFacts) -> str:
    """What an administrator wrote on the node that Slurm cannot take."""
    for key in (names.PARTITIONS_ANNOTATION, names.TOPOLOGY_ANNOTATION):
        parts = [part.strip() for part in kube_node.annotations.get(key, "").split(",")]
        wrong = [part for part in parts if part and not _PLAIN.fullmatch(part)]
        if wrong:
            return f"metadata.annotations[{key}]: expected names with commas between, found {wrong[0]!r}"
    return ""


def _missing(wanted: SlurmNodeSpec) -> str:
    if not wanted.address:
        return "the kubelet has reported no InternalIP"
    if not wanted.cpus or not wanted.memory_mib:
        return "nothing is left of it beside the DaemonSets' pods"
    return ""


def _taint(kube_node: KubeNodeFacts, settings: Settings) -> Iterator[NodeAction]:
    if not settings.taint_effect:
        yield from _untaint(kube_node)
        return
    wanted = Taint(
        key=names.MANAGED_NODE_TAINT,
        value=settings.scheduler_name,
        effect=settings.taint_effect,
    )
    if [taint for taint in kube_node.taints if taint.key == wanted.key] != [wanted]:
        yield SetTaint(kube_node=kube_node.name, taint=wanted)


def _untaint(kube_node: KubeNodeFacts | None) -> Iterator[NodeAction]:
    if kube_node and any(taint.key == names.MANAGED_NODE_TAINT for taint in kube_node.taints):
        yield RemoveTaint(kube_node=kube_node.name)


def _features(kube_node: KubeNodeFacts, settings: Settings) -> Iterator[str]:
    """Our marks, the partitions the node belongs to, and the chosen labels."""
    yield names.BRIDGED_FEATURE
    yield nodes.cluster_feature(settings.cluster)
    listed = kube_node.annotations.get(names.PARTITIONS_ANNOTATION, "")
    yield from filter(None, map(str.strip, listed.split(",")))
    for key, value in sorted(kube_node.labels.items()):
        if any(fnmatch.fnmatchcase(key, pattern) for pattern in settings.node_features):
            yield f"{key}={value}"


def _partition_features(features: tuple[str, ...]) -> frozenset[str]:
    """Those a NodeSet may be made of; what came from labels has a `=`."""
    return frozenset(feature for feature in features if "=" not in feature)


def _gres(name: str, count: int) -> tuple[str, str]:
    """`gpu:a100:2` and its GresConf; the files are names for counting, nothing opens them."""
    kind, _, model = name.partition(":")
    files = ",".join(f"file={kind}-{index}" for index in range(count))
    return (
        f"{name}:{count}",
        f"count={count},name={kind}," + (f"type={model}," if model else "") + files,
    )


def _plain_gres(text: str) -> str:
    """Without the sockets that Slurm adds: `gpu:a100:4(S:0-1)`."""
    return re.sub(r"\([^)]*\)", "", text)


def _is_our_drain(slurm_node: SlurmNodeFacts) -> bool:
    return "DRAIN" in slurm_node.states and slurm_node.reason.startswith(REASON_PREFIX)


def _is_out_of_service_by_others(slurm_node: SlurmNodeFacts) -> bool:
    out_of_service = slurm_node.states & {"DRAIN", "DOWN", "FAIL"}
    return bool(out_of_service) and not slurm_node.reason.startswith(REASON_PREFIX)


def _is_busy(slurm_node: SlurmNodeFacts) -> bool:
    """By counters that may be a second old: Slurm itself refuses to delete a busy node."""
    return bool(
        slurm_node.alloc_cpus or slurm_node.alloc_memory_mib or slurm_node.states & _BUSY_STATES
    )
