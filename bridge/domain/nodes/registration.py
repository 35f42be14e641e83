"""Decide which Kubernetes nodes are nodes of Slurm, how large they are there, and how they leave.

Level-triggered, one step at a time: `decide` looks at one node on both sides and returns what to do
now. What follows a deletion or a creation is decided at the next pass. Only Slurm nodes with this
cluster's mark are ever touched. The mark is a feature, because a feature is created with the node
and survives a restart of slurmctld. `bridge.domain.nodes.state` decides whether a node takes work.
"""

from dataclasses import replace
from datetime import timedelta

from bridge.domain.nodes import drift, named, parking, signs
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Drain,
    NodeAction,
    Respond,
    SetAddress,
    SetFeatures,
)
from bridge.domain.nodes.decision import Node, NodeDecision, NodeRefusal, NodeSettings
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.release import RESTORING, Companion, release
from bridge.domain.nodes.state import REASON_PREFIX
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.values import names
from slurmruntime.values.faults import one_line
from slurmruntime.values.ids import KubeNode

LATER = timedelta(seconds=30)

_LOST = "pods run here whose jobs Slurm has lost"


def decide(node: Node, settings: NodeSettings) -> NodeDecision:
    """Decide what to do for one node."""
    decision = _decide(node, settings)
    if node.slurm_node is not None or node.name is None:
        return decision
    return named.after(decision, node.name, node.named_by, settings.publishing.cluster)


def _decide(node: Node, settings: NodeSettings) -> NodeDecision:
    kube_node, slurm_node = node.kube_node, node.slurm_node
    if slurm_node is not None and _is_strange(slurm_node, kube_node, settings):
        return _leave_alone(kube_node, slurm_node)
    if kube_node is None or not nodes.is_wanted(kube_node):
        return _take_out(node, settings)
    if faults := node_spec.faults(kube_node, settings.publishing):
        text = one_line(faults)
        return _cannot(kube_node, slurm_node, "InvalidAnnotation", text)
    if nodes.is_hybrid(kube_node):
        return _share(node, kube_node, settings)
    wanted = node_spec.spec(kube_node, node.daemons, settings.publishing)
    if slurm_node is None:
        return _create(node, kube_node, wanted, settings)
    if not slurm_node.is_external:
        text = (
            f"the record of {slurm_node.name} belongs to a slurmd: "
            f"label the node {names.HYBRID_NODE_LABEL}"
        )
        return _cannot(kube_node, slurm_node, nodes.NAME_TAKEN, text)
    change = _keep_in_step(node, kube_node, slurm_node, wanted, settings)
    change = _respond(change, kube_node, slurm_node, wanted)
    is_refused = node.refusal is not None and node.refusal.spec == wanted
    refusal = node.refusal if is_refused else None
    return _with_kube_side(change, kube_node, slurm_node, settings, refusal=refusal)


def yield_to(kube_node: KubeNodeFacts, holder: KubeNodeFacts) -> NodeDecision:
    """Decide what to do for a node whose Slurm name is taken by another one."""
    text = (
        f"node {holder.name} already has the Slurm name {nodes.slurm_name(holder)}: "
        f"give one of them another name with the label {names.SLURM_NODE_NAME_LABEL}"
    )
    return _cannot(kube_node, None, nodes.NAME_TAKEN, text)


def _is_strange(
    slurm_node: SlurmNodeFacts, kube_node: KubeNodeFacts | None, settings: NodeSettings
) -> bool:
    """Check whether the Slurm node is neither ours nor a slurmd's that we should mark."""
    if nodes.cluster_feature(settings.publishing.cluster) in slurm_node.features:
        return False
    is_anothers = any(f.startswith(f"{names.CLUSTER_FEATURE}=") for f in slurm_node.features)
    is_slurmds = not slurm_node.is_external and not is_anothers
    return not (is_slurmds and kube_node is not None and nodes.is_hybrid(kube_node))


def _leave_alone(kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts) -> NodeDecision:
    text = f"Slurm node {slurm_node.name} does not belong to this cluster: left alone"
    if kube_node is None or not nodes.is_wanted(kube_node):
        return NodeDecision(actions=tuple(signs.remove(kube_node)), reason=text)
    return _cannot(kube_node, None, nodes.NAME_TAKEN, text)


def _cannot(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None, reason: str, text: str
) -> NodeDecision:
    """Report the problem on the Kubernetes node.

    The taint guards what Slurm hands out, so it is removed where Slurm has nothing.
    """
    actions = [*signs.set_condition(kube_node, node_state.problem(reason, text))]
    if slurm_node is None:
        actions += [*signs.untaint(kube_node), *signs.uncordon(kube_node)]
    return NodeDecision(actions=tuple(actions), reason=text)


def _create(
    node: Node, kube_node: KubeNodeFacts, wanted: SlurmNodeSpec, settings: NodeSettings
) -> NodeDecision:
    if problem := drift.missing(wanted):
        return _cannot(kube_node, None, "NotRegistered", problem)
    if node.refusal and node.refusal.spec == wanted:
        text = f"Slurm refuses the node: {node.refusal.words}"
        return _cannot(kube_node, None, "Refused", text)
    why = _unheld(node.hold) or node_state.unavailable(kube_node, settings.policy)
    actions: tuple[NodeAction, ...] = (Create(spec=wanted),)
    if why:
        cluster = settings.publishing.cluster
        create = Create(spec=parking.parked_spec(wanted, cluster))
        drain = Drain(slurm_node=wanted.name, reason=REASON_PREFIX + why)
        actions = (create, drain, *parking.leave(wanted, cluster))
    # The taint comes first: nothing else may use what Slurm is about to hand out.
    return NodeDecision(
        actions=(*signs.taint(kube_node, settings.scheduler_name, settings.taint_effect), *actions),
        reason="labelled, not in Slurm yet",
        wanted=wanted,
    )


def _leave_parking(
    node: Node,
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    wanted: SlurmNodeSpec,
    settings: NodeSettings,
) -> NodeDecision:
    """Repeat the way out of parking after a process died before the node was in its partitions.

    The node is drained first if it must not take jobs there.
    """
    why = (
        _LOST if node.hold is not Hold.HELD else node_state.unavailable(kube_node, settings.policy)
    )
    actions = tuple(parking.leave(wanted, settings.publishing.cluster))
    if why and not slurm_node.states & node_state.OUT_OF_SERVICE:
        actions = (Drain(slurm_node=slurm_node.name, reason=REASON_PREFIX + why), *actions)
    return NodeDecision(actions=actions, reason="it is parked, perhaps without its partitions")


def _keep_in_step(
    node: Node,
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    wanted: SlurmNodeSpec,
    settings: NodeSettings,
) -> NodeDecision:
    """Apply what Slurm can change at once, also while jobs run; the rest waits until none does."""
    if nodes.is_parked(slurm_node):
        return _leave_parking(node, kube_node, slurm_node, wanted, settings)
    if node.hold is not Hold.HELD:
        return _keep_for_pods(node, kube_node, slurm_node, settings)
    policy = settings.policy
    is_down = "DOWN" in slurm_node.states
    # A node that others took out of service, or a lost one, takes no jobs; a re-created one would.
    # A crashed node is declared lost first: it comes back without its devices for a while.
    if not is_down and not node.is_crashed and not node_state.is_by_others(slurm_node):
        patience = policy.device_patience
        if wait := drift.missing_devices(slurm_node, wanted, node.reason_age, patience):
            return NodeDecision(actions=wait.drain, reason=wait.why, again=wait.left)
        if shrunk := drift.must_shrink(slurm_node, wanted):
            return _replace(slurm_node, shrunk)
        is_idle = not node_state.unavailable(kube_node, policy) and not slurm_node.is_busy
        if is_idle and (grown := drift.may_grow(slurm_node, wanted)):
            return _replace(slurm_node, grown)
    is_refused = node.refusal is not None and node.refusal.spec == wanted
    changes = () if is_refused else tuple(drift.changes(slurm_node, wanted))
    state = node_state.to_slurm(
        kube_node,
        slurm_node,
        is_given_up=node.is_given_up,
        is_crashed=node.is_crashed,
        policy=policy,
    )
    reasons = [*(["its description changed"] if changes else []), state.reason]
    return NodeDecision(
        actions=(*changes, *state.actions),
        reason=", ".join(filter(None, reasons)) or "in step",
        wanted=wanted,
    )


def _respond(
    change: NodeDecision,
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    wanted: SlurmNodeSpec,
) -> NodeDecision:
    """Answer for a slurmd that Slurm tried to reach: otherwise users could close a node.

    Signalling a job of their own would be enough. A node without jobs is re-created, which needs no
    such answer. One that is DOWN might come back.
    """
    states = slurm_node.states
    if not ("NOT_RESPONDING" in states and slurm_node.is_busy and kube_node.is_ready):
        return change
    if "DOWN" in states:
        return change
    actions = (
        Respond(slurm_node=slurm_node.name, record=slurm_node),
        SetAddress(slurm_node=slurm_node.name, address=wanted.address or slurm_node.address),
    )
    reason = f"Slurm looked for a slurmd there, {change.reason}"
    return replace(change, actions=(*change.actions, *actions), reason=reason)


def _keep_for_pods(
    node: Node, kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts, settings: NodeSettings
) -> NodeDecision:
    """Reserve the node for its pods, whose placeholders Slurm has lost.

    No other job may start there before their placeholders do, whether the node is cordoned or not.
    """
    hold = node.hold
    actions: tuple[NodeAction, ...] = ()
    reason = "waiting for Slurm to report the placeholders of its pods"
    is_drained = "DRAIN" in slurm_node.states
    if _unheld(hold):
        reason = _unheld(hold)
        if not is_drained and not node_state.is_by_others(slurm_node):
            actions = (Drain(slurm_node=slurm_node.name, reason=REASON_PREFIX + reason),)
    elif hold is Hold.RESTORING:
        own = Companion(name=slurm_node.name, slurm_node=slurm_node, hold=hold)
        actions, reason = release((own, *node.companions))
        if node.leader is not None:
            actions, reason = (), f"{RESTORING}; it is released together with {node.leader}"
    else:  # a drain does no harm, whatever Slurm reports next; lifting one might
        state = node_state.to_slurm(
            kube_node, slurm_node, is_given_up=False, policy=settings.policy
        )
        if all(isinstance(action, Drain) for action in state.actions):
            actions = state.actions
    return NodeDecision(actions=actions, reason=reason, again=named.SOON)


def _unheld(hold: Hold) -> str:
    is_unheld = hold in (Hold.MISSING, Hold.UNDECIDED)
    return _LOST if is_unheld else ""


def _share(node: Node, kube_node: KubeNodeFacts, settings: NodeSettings) -> NodeDecision:
    """Keep a slurmd's node in step: add only our features, and pass drains both ways."""
    slurm_node = node.slurm_node
    if slurm_node is None:
        text = f"no slurmd has registered as {nodes.slurm_name(kube_node)}"
        return _cannot(kube_node, None, "NotRegistered", text)
    if slurm_node.is_external:
        return _replace(slurm_node, "its own slurmd must register")
    ours = node_spec.spec(kube_node, node.daemons, settings.publishing).features
    wanted = node_spec.shared_features(slurm_node, ours, settings.publishing)
    actions: list[NodeAction] = []
    if set(wanted) != set(slurm_node.features):
        actions.append(SetFeatures(slurm_node=slurm_node.name, features=wanted))
    if node.hold is not Hold.HELD:
        change = _keep_for_pods(node, kube_node, slurm_node, settings)
        return _with_kube_side(change, kube_node, slurm_node, settings)
    state = node_state.to_slurm(kube_node, slurm_node, is_given_up=False, policy=settings.policy)
    change = NodeDecision(actions=(*actions, *state.actions), reason=state.reason or "shared")
    return _with_kube_side(change, kube_node, slurm_node, settings)


def _take_out(node: Node, settings: NodeSettings) -> NodeDecision:
    """Remove the node: running jobs finish first, and the taint stays until Slurm has dropped it."""
    slurm_node = node.slurm_node
    if slurm_node is None:
        return NodeDecision(
            actions=tuple(signs.remove(node.kube_node)), reason="not wanted, not in Slurm"
        )
    if not slurm_node.is_external:
        return _unshare(node.kube_node, slurm_node, settings)
    why = "no longer wanted" if node.kube_node else "gone from Kubernetes"
    decision = _replace(slurm_node, why)
    if not any(isinstance(action, Delete) for action in decision.actions):
        return decision
    drain = tuple(action for action in decision.actions if isinstance(action, Drain))
    if node.named_by is None:
        text = f"{why}, looking for jobs that name it"
        return NodeDecision(actions=drain, reason=text, again=named.SOON)
    # Slurm refuses any update of a job that names a deleted node (2018), and a running job keeps
    # its lists.
    if rewritten := tuple(named.without(slurm_node.name, node.named_by)):
        text = f"{why}, waiting jobs name it"
        return NodeDecision(actions=(*drain, *rewritten), reason=text, again=named.SOON)
    if node.named_by:
        jobs = ", ".join(str(job.id) for job in node.named_by[:5])
        text = f"{why}, running jobs exclude it: {jobs}"
        return NodeDecision(actions=drain, reason=text, again=LATER)
    return decision


def _unshare(
    kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts, settings: NodeSettings
) -> NodeDecision:
    """Remove everything of ours; the record stays with its slurmd."""
    features = node_spec.shared_features(slurm_node, (), settings.publishing)
    ready = KubeNodeFacts(name=KubeNode(""), uid="")
    lifted = node_state.to_slurm(ready, slurm_node, is_given_up=False, policy=settings.policy)
    return NodeDecision(
        actions=(
            *lifted.actions,
            SetFeatures(slurm_node=slurm_node.name, features=features),
            *signs.remove(kube_node),
        ),
        reason="no longer wanted, its slurmd stays",
    )


def _replace(slurm_node: SlurmNodeFacts, why: str) -> NodeDecision:
    """Drain and, once idle, delete a node that Slurm cannot change in place.

    The next pass re-creates it if it is still wanted.
    """
    drain: tuple[Drain, ...] = ()
    if "DRAIN" not in slurm_node.states and not node_state.is_by_others(slurm_node):
        drain = (Drain(slurm_node=slurm_node.name, reason=REASON_PREFIX + why),)
    if slurm_node.is_busy:
        return NodeDecision(actions=drain, reason=f"{why}, its jobs finish first")
    delete = Delete(slurm_node=slurm_node.name)
    return NodeDecision(actions=(*drain, delete), reason=why, again=timedelta())


def _with_kube_side(
    change: NodeDecision,
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    settings: NodeSettings,
    *,
    refusal: NodeRefusal | None = None,
) -> NodeDecision:
    """Add the Kubernetes side: the taint first, the node's state in Slurm last."""
    actions = (
        *signs.taint(kube_node, settings.scheduler_name, settings.taint_effect),
        *change.actions,
        *node_state.to_kube(kube_node, slurm_node, settings.policy),
        *signs.set_condition(
            kube_node, signs.condition(kube_node, slurm_node, refusal.words if refusal else None)
        ),
    )
    return replace(change, actions=actions)
