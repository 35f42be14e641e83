"""Plan which Kubernetes nodes are nodes of Slurm, how large they are there, and how they leave.

Level-triggered, one step at a time: `plan` looks once at what is known of one node on both sides,
and returns what to do now. What follows a deletion or a creation is planned at the next look. Only
Slurm nodes with this cluster's mark are ever touched. The mark is a feature, because a feature is
created with the node and survives a restart of slurmctld.

A step that cannot be undone is planned only from facts that were read for it: otherwise the plan is
to read them first.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from bridge.domain.nodes import named, parking
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Drain,
    NodeAction,
    RemoveCondition,
    RemoveTaint,
    Respond,
    SetAddress,
    SetCondition,
    SetFeatures,
    SetTaint,
    Uncordon,
)
from bridge.domain.nodes.decision import Case, NodeFacts, NodePlan, NodeSettings, RecordCase
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.state import REASON_PREFIX, Standing
from slurmruntime.model import nodes
from slurmruntime.model.nodes import (
    KubeNodeFacts,
    NodeCondition,
    SlurmNodeFacts,
    Taint,
)
from slurmruntime.values import names
from slurmruntime.values.faults import one_line

REPEATABLE = (Create, SetTaint, SetCondition)
"""Actions that are harmless even when planned from stale facts."""


def plan(facts: NodeFacts, settings: NodeSettings) -> NodePlan:
    """Plan the next step for one node."""
    step = _step(facts, settings)
    if facts.slurm_node is None and facts.named_by != ():
        step = named.after(step, facts.name, facts.named_by, settings.publishing.cluster)
    is_harmless = all(isinstance(action, REPEATABLE) for action in step.actions)
    if not facts.is_confirmed and not is_harmless:
        others = (companion.name for companion in facts.companions)
        return NodePlan(confirm=(*others, facts.name), reason=step.reason)
    if not facts.rivals and facts.retry is None:
        return step
    rivals = tuple(action for rival in facts.rivals for action in _yield_to(rival, facts.kube_node))
    delays = [delay for delay in (step.again, facts.retry) if delay is not None]
    return replace(step, rivals=rivals, again=min(delays, default=None))


def _step(facts: NodeFacts, settings: NodeSettings) -> NodePlan:
    kube_node, slurm_node = facts.kube_node, facts.slurm_node
    if slurm_node is not None and _is_strange(slurm_node, kube_node, settings):
        return _leave_alone(kube_node, slurm_node)
    is_hybrid = kube_node is not None and nodes.is_hybrid(kube_node)
    may_end_jobs = facts.hold is Hold.HELD and not is_hybrid
    standing = node_state.standing(
        kube_node,
        slurm_node,
        settings.policy,
        is_given_up=may_end_jobs and facts.is_given_up,
        is_crashed=may_end_jobs and facts.is_crashed,
        has_tenants=facts.has_tenants,
        idle_for=facts.idle_for,
    )
    if kube_node is None or not nodes.is_wanted(kube_node):
        return _take_out(facts, standing, settings)
    record = node_spec.record(kube_node, facts.daemons, slurm_node, settings.publishing)
    if record.wanted is None:
        return _cannot(kube_node, slurm_node, "InvalidAnnotation", one_line(record.faults))
    wanted = record.wanted
    is_refused = facts.refusal is not None and facts.refusal.spec == wanted
    if slurm_node is not None:
        case = RecordCase(
            facts, settings, kube_node, wanted, record, standing, is_refused, slurm_node
        )
        return _share(case) if is_hybrid else _serve(case)
    if is_hybrid:
        text = f"no slurmd has registered as {nodes.slurm_name(kube_node)}"
        return _cannot(kube_node, None, "NotRegistered", text)
    return _create(Case(facts, settings, kube_node, wanted, record, standing, is_refused))


# -- nodes that we must not touch, or cannot register ----------------------------------------------


def _yield_to(kube_node: KubeNodeFacts, holder: KubeNodeFacts | None) -> tuple[NodeAction, ...]:
    holder = holder or kube_node
    text = (
        f"node {holder.name} already has the Slurm name {nodes.slurm_name(holder)}: "
        f"give one of them another name with the label {names.SLURM_NODE_NAME_LABEL}"
    )
    return _cannot(kube_node, None, nodes.NAME_TAKEN, text).actions


def _is_strange(
    slurm_node: SlurmNodeFacts, kube_node: KubeNodeFacts | None, settings: NodeSettings
) -> bool:
    """Check whether the Slurm node is neither ours nor a slurmd's that we should mark."""
    if nodes.cluster_feature(settings.publishing.cluster) in slurm_node.features:
        return False
    is_anothers = any(f.startswith(f"{names.CLUSTER_FEATURE}=") for f in slurm_node.features)
    is_slurmds = not slurm_node.is_external and not is_anothers
    return not (is_slurmds and kube_node is not None and nodes.is_hybrid(kube_node))


def _leave_alone(kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts) -> NodePlan:
    text = f"Slurm node {slurm_node.name} does not belong to this cluster: left alone"
    if kube_node is None or not nodes.is_wanted(kube_node):
        return NodePlan(actions=tuple(_clear(kube_node)), reason=text)
    return _cannot(kube_node, None, nodes.NAME_TAKEN, text)


def _cannot(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None, reason: str, text: str
) -> NodePlan:
    """Report the problem on the Kubernetes node.

    The taint guards what Slurm hands out, so it is removed where Slurm has nothing.
    """
    actions = [*_set_condition(kube_node, node_state.problem(reason, text))]
    if slurm_node is None:
        actions += [*_untaint(kube_node), *_uncordon(kube_node)]
    return NodePlan(actions=tuple(actions), reason=text)


# -- external nodes --------------------------------------------------------------------------------


def _create(case: Case) -> NodePlan:
    kube_node, wanted = case.kube_node, case.wanted
    if case.record.lacks:
        return _cannot(kube_node, None, "NotRegistered", case.record.lacks)
    if case.facts.refusal is not None and case.is_refused:
        text = f"Slurm refuses the node: {case.facts.refusal.words}"
        return _cannot(kube_node, None, "Refused", text)
    # The taint comes first: nothing else may use what Slurm is about to hand out.
    return NodePlan(
        actions=(*_taint(kube_node, case.settings), *parking.create(case)),
        reason="labelled, not in Slurm yet",
        wanted=wanted,
    )


def _serve(case: RecordCase) -> NodePlan:
    if not case.slurm_node.is_external:
        text = (
            f"the record of {case.slurm_node.name} belongs to a slurmd: "
            f"label the node {names.HYBRID_NODE_LABEL}"
        )
        return _cannot(case.kube_node, case.slurm_node, nodes.NAME_TAKEN, text)
    if nodes.is_parked(case.slurm_node):
        step = parking.leave_again(case)
    elif case.facts.hold is not Hold.HELD:
        step = parking.keep_for_pods(case)
    else:
        step = _make_anew(case) or _keep_in_step(case)
    return _show(case, _respond(case, step))


def _make_anew(case: RecordCase) -> NodePlan | None:
    """Re-create a node that Slurm cannot change in place; None if there is no need.

    A node that others took out of service, or a lost one, takes no jobs; a re-created one would. A
    crashed node is declared lost first: it comes back without its devices for a while.
    """
    slurm_node, record = case.slurm_node, case.record
    if "DOWN" in slurm_node.states or case.facts.is_crashed or case.standing.is_by_others:
        return None
    if record.devices and (wait := _await_devices(case)):
        return wait
    if record.shrunk:
        return _replace(slurm_node, case.standing, record.shrunk)
    if record.grown and not case.standing.unavailable and not slurm_node.is_busy:
        return _replace(slurm_node, case.standing, record.grown)
    return None


def _await_devices(case: RecordCase) -> NodePlan | None:
    """Drain the node until its devices are back; None once it has waited long enough.

    Whenever a kubelet or its device plugin restarts, their count is 0 for some seconds. The time of
    the drain shows how long the wait has been: no state is needed, and a new leader knows it, too.
    """
    slurm_node, why = case.slurm_node, case.record.devices
    patience = case.settings.policy.device_patience
    drain = Drain(slurm_node=slurm_node.name, reason=f"{REASON_PREFIX}{why}")
    if "DRAIN" not in slurm_node.states or slurm_node.reason != drain.reason:
        return NodePlan(actions=(drain,), reason=why, again=patience)
    left = patience - (case.facts.reason_age or patience)
    return NodePlan(reason=f"{why}; waiting", again=left) if left > timedelta() else None


def _keep_in_step(case: RecordCase) -> NodePlan:
    """Apply what Slurm can change at once, also while jobs run; the rest waits until none does."""
    changes = () if case.is_refused else case.record.changes
    change = case.standing.to_slurm
    reasons = [*(["its description changed"] if changes else []), change.reason]
    return NodePlan(
        actions=(*changes, *change.actions),
        reason=", ".join(filter(None, reasons)) or "in step",
        wanted=None if case.is_refused else case.wanted,
    )


def _respond(case: RecordCase, step: NodePlan) -> NodePlan:
    """Answer for a slurmd that Slurm tried to reach: otherwise users could close a node.

    Signalling a job of their own would be enough. A node without jobs is re-created, which needs no
    such answer. One that is DOWN might come back.
    """
    slurm_node = case.slurm_node
    states = slurm_node.states
    is_sought = "NOT_RESPONDING" in states and slurm_node.is_busy
    if not is_sought or not case.kube_node.is_ready or "DOWN" in states:
        return step
    address = case.wanted.address or slurm_node.address
    actions = (
        Respond(slurm_node=slurm_node.name, record=slurm_node),
        SetAddress(slurm_node=slurm_node.name, address=address),
    )
    reason = f"Slurm looked for a slurmd there, {step.reason}"
    return replace(step, actions=(*step.actions, *actions), reason=reason)


# -- hybrid nodes ----------------------------------------------------------------------------------


def _share(case: RecordCase) -> NodePlan:
    """Keep a slurmd's node in step: add only our features, and pass drains both ways."""
    slurm_node, standing, features = case.slurm_node, case.standing, case.record.features
    if slurm_node.is_external:
        return _replace(slurm_node, standing, "its own slurmd must register")
    if case.facts.hold is not Hold.HELD:
        return _show(case, parking.keep_for_pods(case))
    actions, reason = standing.to_slurm.actions, standing.to_slurm.reason or "shared"
    if set(features) != set(slurm_node.features):
        actions = (SetFeatures(slurm_node=slurm_node.name, features=features), *actions)
    return _show(case, NodePlan(actions=actions, reason=reason, again=standing.again))


# -- nodes that leave ------------------------------------------------------------------------------


def _take_out(facts: NodeFacts, standing: Standing, settings: NodeSettings) -> NodePlan:
    """Remove the node: running jobs finish first, and the taint stays until Slurm has dropped it."""
    kube_node, slurm_node = facts.kube_node, facts.slurm_node
    if slurm_node is None:
        return NodePlan(actions=tuple(_clear(kube_node)), reason="not wanted, not in Slurm")
    if not slurm_node.is_external:
        # Everything of ours goes; the record stays with its slurmd.
        features = node_spec.shared_features(slurm_node, (), settings.publishing)
        set_features = SetFeatures(slurm_node=slurm_node.name, features=features)
        return NodePlan(
            actions=(*standing.lift, set_features, *_clear(kube_node)),
            reason="no longer wanted, its slurmd stays",
        )
    why = "no longer wanted" if kube_node else "gone from Kubernetes"
    step = _replace(slurm_node, standing, why)
    if slurm_node.is_busy or facts.named_by == ():
        return step
    return named.before(step, slurm_node.name, facts.named_by)


def _replace(slurm_node: SlurmNodeFacts, standing: Standing, why: str) -> NodePlan:
    """Drain and, once idle, delete a node that Slurm cannot change in place.

    The next look re-creates it if it is still wanted.
    """
    drain: tuple[Drain, ...] = ()
    if "DRAIN" not in slurm_node.states and not standing.is_by_others:
        drain = (Drain(slurm_node=slurm_node.name, reason=REASON_PREFIX + why),)
    if slurm_node.is_busy:
        return NodePlan(actions=drain, reason=f"{why}, its jobs finish first")
    delete = Delete(slurm_node=slurm_node.name)
    return NodePlan(actions=(*drain, delete), reason=why, again=timedelta())


# -- what the Kubernetes node shows ----------------------------------------------------------------


def _show(case: RecordCase, step: NodePlan) -> NodePlan:
    """Add the Kubernetes side: the taint first, the node's state in Slurm last."""
    condition = _condition(case)
    actions = (
        *_taint(case.kube_node, case.settings),
        *step.actions,
        *case.standing.to_kube,
        *(_set_condition(case.kube_node, condition) if condition else ()),
    )
    return replace(step, actions=actions)


def _condition(case: RecordCase) -> NodeCondition | None:
    condition, missing = case.standing.condition, case.record.partitions
    refusal = case.facts.refusal
    if condition is None or condition.status != "True" or not case.slurm_node.is_external:
        return condition
    if refusal is not None and case.is_refused:
        text = f"Slurm refuses a change of the node: {refusal.words}"
        return replace(condition, reason="ChangeRefused", message=text)
    if not missing:
        return condition
    text = (
        f"Slurm has no partition {', '.join(missing)} that takes nodes with a feature of that name"
    )
    if not case.slurm_node.partitions:
        return replace(condition, status="False", reason="NoPartition", message=text)
    return replace(condition, reason="PartitionMissing", message=text)


def _set_condition(kube_node: KubeNodeFacts, desired: NodeCondition) -> Iterator[NodeAction]:
    """Set the condition unless the node already has it.

    There is no Event for a new node that is in service at once, but for one that is in Slurm in an
    undesired state.
    """
    old = kube_node.condition(desired.type)
    if old == desired:
        return
    is_fine = desired.reason == node_state.IN_SERVICE
    is_news = old.reason != desired.reason if old is not None else not is_fine
    yield SetCondition(
        kube_node=kube_node.name,
        condition=desired,
        event=("Normal" if is_fine else "Warning") if is_news else "",
    )


def _taint(kube_node: KubeNodeFacts, settings: NodeSettings) -> Iterator[NodeAction]:
    """Keep foreign pods off the node; without an effect, keep no taint."""
    if not settings.taint_effect:
        yield from _untaint(kube_node)
        return
    wanted = Taint(
        key=names.MANAGED_NODE_TAINT, value=settings.scheduler_name, effect=settings.taint_effect
    )
    if [one for one in kube_node.taints if one.key == wanted.key] != [wanted]:
        yield SetTaint(kube_node=kube_node.name, taint=wanted)


def _clear(kube_node: KubeNodeFacts | None) -> Iterator[NodeAction]:
    if kube_node is None:
        return
    yield from _untaint(kube_node)
    yield from _uncordon(kube_node)
    if kube_node.condition(names.SLURM_STATE_CONDITION) is not None:
        yield RemoveCondition(kube_node=kube_node.name)


def _untaint(kube_node: KubeNodeFacts) -> Iterator[NodeAction]:
    if any(one.key == names.MANAGED_NODE_TAINT for one in kube_node.taints):
        yield RemoveTaint(kube_node=kube_node.name)


def _uncordon(kube_node: KubeNodeFacts) -> Iterator[NodeAction]:
    if names.CORDON_ANNOTATION in kube_node.annotations:
        yield Uncordon(kube_node=kube_node.name)
