"""Decide in both directions whether a node takes work, and which side that decision came from.

A cordon, a node that is not ready, and the listed conditions drain the Slurm node. Slurm's own
DRAIN, DOWN and FAIL show on the Kubernetes node, and cordon it if the administrator wants that.
Each side marks what came from the other one: the reason of our own drain starts with
`REASON_PREFIX`, and our own cordon has an annotation beside it. What has no such mark was done by a
person (or a health check) and is neither lifted nor overwritten; what has one is never taken for
news. So there is no loop, and no state has to be kept.

UNDRAIN, and RESUME from DOWN, clear state and reason together, so a state without a reason comes
from someone else. One case cannot be detected: DRAIN without a reason *over* our own drain leaves
our reason (measured with 26.05); scontrol insists on a reason, REST does not. DOWN and FAIL over
our own drain are recognised by the state.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from bridge.domain.model import hybrid
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.nodes.actions import Cordon, Down, Drain, NodeAction, Resume, Uncordon, Undrain
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, NodeCondition, SlurmNodeFacts
from slurmruntime.values import names
from slurmruntime.values.faults import shortened
from slurmruntime.values.visible import visible_line

REASON_PREFIX = "slurm-bridge: "
"""The prefix of a drain's or DOWN's reason if it is ours."""

CORDONED = "cordoned in Kubernetes"
NOT_READY = "not ready in Kubernetes"
GIVEN_UP = "not ready in Kubernetes, its pods were given up"
CRASHED = "crashed, and all its pods with it"
TAKEN = "pods have it, native jobs wait"

NO_PODS = "NoPods"
"""The reason of the condition of a node that is in service in Slurm, but gets no pods."""

SEEN_WITHIN = timedelta(seconds=2)
"""How much later than others we may see a pod."""

_LONGEST_REASON = 128
"""Bytes of a condition's reason in the reason of a drain; Kubernetes' own are words such as `KubeletHasDiskPressure`."""

IN_SERVICE = "InService"
"""The reason of the condition of a node that is in Slurm as wanted."""

OUT_OF_SERVICE = frozenset({"DRAIN", "DOWN", "FAIL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRules:
    """What nodes are judged by."""

    drain_conditions: frozenset[str] = frozenset()
    """Types of node conditions that drain the node while they are True."""
    device_patience: timedelta = timedelta(minutes=5)
    """How long devices may be missing before the node is re-created without them: longer than a device plugin takes to restart."""
    hybrid: HybridRule = HybridRule.NONE
    """What keeps native jobs of hybrid nodes off containers that still stop."""
    cordons: bool = False
    """Whether a node that is out of service in Slurm is cordoned in Kubernetes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """The actions to take, and the reason in one sentence; no actions if there is nothing to do."""

    actions: tuple[NodeAction, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a node takes work, as both sides have it, and whose word that is."""

    unavailable: str = ""
    """Why Slurm must start nothing there; "" if it may."""
    is_by_others: bool = False
    """A person or a health check took it out of service in Slurm."""
    to_slurm: StateChange = field(default_factory=StateChange)
    """What carries its availability from Kubernetes to Slurm."""
    lift: tuple[NodeAction, ...] = ()
    """What lifts our own drain or DOWN, however the node is."""
    to_kube: tuple[NodeAction, ...] = ()
    """What sets our cordon, or lifts it."""
    condition: NodeCondition | None = None
    """What the node shows of its state in Slurm; None if it is not there."""
    again: timedelta | None = None
    """When the pods' turn is over, if that is only a matter of time."""


def standing(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    policy: NodeRules,
    *,
    is_given_up: bool,
    is_crashed: bool,
    has_tenants: bool = False,
    idle_for: timedelta = timedelta(),
) -> Standing:
    """Compare both sides' words about one node.

    Args:
        is_given_up: the node has pods of ours, and Kubernetes is deleting all of them.
        is_crashed: it had pods of ours, and all of them were lost with the machine; they still wait
            for the end of their jobs. Only DOWN ends a job as NODE_FAIL.
        has_tenants: containers of pods of ours may run there, now or in a moment.
        idle_for: how long Slurm has had no job there.
    """
    is_taken = _is_taken(kube_node, slurm_node, policy, has_tenants=has_tenants, idle_for=idle_for)
    why = unavailable(kube_node, policy, is_taken=is_taken) if kube_node is not None else ""
    if slurm_node is None:
        return Standing(unavailable=why)
    outside = is_by_others(slurm_node)
    lift = () if outside else tuple(_lift(slurm_node))
    if kube_node is None:
        return Standing(is_by_others=outside, lift=lift)
    shown = condition(slurm_node)
    no_pods = hybrid.why_refused(kube_node, policy.hybrid, has_whole_node=True)
    return Standing(
        unavailable=why,
        is_by_others=outside,
        to_slurm=_to_slurm(
            kube_node, slurm_node, why, is_given_up=is_given_up, is_crashed=is_crashed
        ),
        lift=lift,
        to_kube=tuple(to_kube(kube_node, slurm_node, policy)),
        condition=problem(NO_PODS, no_pods) if no_pods and shown.status == "True" else shown,
        again=SEEN_WITHIN if is_taken and not (has_tenants or slurm_node.is_busy) else None,
    )


def unavailable(kube_node: KubeNodeFacts, policy: NodeRules, *, is_taken: bool) -> str:
    """Explain why Slurm must start nothing there, as the reason of a drain; "" if it may."""
    if kube_node.is_unschedulable and names.CORDON_ANNOTATION not in kube_node.annotations:
        return CORDONED
    if not kube_node.is_ready:
        return NOT_READY
    for kube_condition in sorted(kube_node.conditions, key=lambda entry: entry.type):
        if kube_condition.type in policy.drain_conditions and kube_condition.status == "True":
            return f"condition {kube_condition.type}" + (
                f" ({_in_short(kube_condition.reason)})" if kube_condition.reason else ""
            )
    return TAKEN if is_taken else ""


def _in_short(reason: str) -> str:
    """Return a condition's reason as Slurm may store and show it: a kubelet may write anything there."""
    return shortened(visible_line(reason[:_LONGEST_REASON]), _LONGEST_REASON)


def _to_slurm(
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    why: str,
    *,
    is_given_up: bool,
    is_crashed: bool,
) -> StateChange:
    """Carry the node's availability, or why it has none, from Kubernetes to Slurm."""
    name, states = slurm_node.name, slurm_node.states
    if is_by_others(slurm_node):
        return StateChange()
    drain = Drain(slurm_node=name, reason=REASON_PREFIX + why)
    if "DOWN" in states:
        if not kube_node.is_ready or is_crashed:
            return StateChange()
        resume = Resume(slurm_node=name)
        return StateChange(actions=(resume, drain) if why else (resume,), reason="ready again")
    lost = GIVEN_UP if not kube_node.is_ready and is_given_up else CRASHED if is_crashed else ""
    if lost and slurm_node.is_external:
        down = Down(slurm_node=name, reason=REASON_PREFIX + lost)
        return StateChange(actions=(down,), reason=lost)
    if why and ("DRAIN" not in states or slurm_node.reason != drain.reason):
        return StateChange(actions=(drain,), reason=why)
    if not why and "DRAIN" in states:
        return StateChange(actions=(Undrain(slurm_nodes=(name,)),), reason="available again")
    return StateChange()


def to_kube(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None, policy: NodeRules
) -> Iterator[NodeAction]:
    """Carry the node's state from Slurm to Kubernetes: set our cordon, or lift it."""
    is_marked = names.CORDON_ANNOTATION in kube_node.annotations
    if policy.cordons and slurm_node is not None and is_by_others(slurm_node):
        # Marked but schedulable: our cordon was lifted by hand. Respect that until Slurm has the
        # node in service again.
        if not is_marked and not kube_node.is_unschedulable:
            yield Cordon(kube_node=kube_node.name, reason=_out_of_service(slurm_node).message)
    elif is_marked:
        yield Uncordon(kube_node=kube_node.name)


def condition(slurm_node: SlurmNodeFacts) -> NodeCondition:
    """Return what `kubectl describe node` shows about the node's state in Slurm."""
    states = slurm_node.states
    if "NOT_RESPONDING" in states and slurm_node.is_external:
        return problem(
            "NotResponding",
            "a job there was signalled or suspended, and Slurm looked for a slurmd; "
            "slurm-bridge answers for it",
        )
    if is_drained_for_pods(slurm_node):
        text = f"pods have node {slurm_node.name}: native jobs wait until all of them have ended"
        return replace(_in_service(slurm_node), message=text)
    if states & OUT_OF_SERVICE:
        return _out_of_service(slurm_node)
    if "MAINTENANCE" in states:
        return problem("Maintenance", _reservation(slurm_node))
    if "RESERVED" in states:
        return problem("Reserved", _reservation(slurm_node))
    return _in_service(slurm_node)


def problem(reason: str, message: str) -> NodeCondition:
    """Return the condition that explains why the node is not in Slurm as it should be."""
    return NodeCondition(
        type=names.SLURM_STATE_CONDITION, status="False", reason=reason, message=message
    )


def is_by_others(slurm_node: SlurmNodeFacts) -> bool:
    """Check whether a person or a health check, rather than we, took it out of service."""
    states, reason = slurm_node.states, slurm_node.reason
    if "DOWN" in states:
        return reason not in (REASON_PREFIX + GIVEN_UP, REASON_PREFIX + CRASHED)
    return "FAIL" in states or ("DRAIN" in states and not reason.startswith(REASON_PREFIX))


def _in_service(slurm_node: SlurmNodeFacts) -> NodeCondition:
    return NodeCondition(
        type=names.SLURM_STATE_CONDITION,
        status="True",
        reason=IN_SERVICE,
        message=f"Slurm starts jobs on node {slurm_node.name}",
    )


def _is_taken(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    policy: NodeRules,
    *,
    has_tenants: bool,
    idle_for: timedelta,
) -> bool:
    """Check whether it is the pods' turn on a hybrid node.

    It ends when neither containers nor their job are left, and a moment later: a pod that was given the
    node before the end of its job may not be seen yet. After it, none is bound.
    """
    if policy.hybrid is not HybridRule.ALTERNATE or kube_node is None or slurm_node is None:
        return False
    is_in_use = slurm_node.is_busy or idle_for < SEEN_WITHIN
    is_kept = is_drained_for_pods(slurm_node) and is_in_use
    return nodes.is_hybrid(kube_node) and (has_tenants or is_kept)


def is_drained_for_pods(slurm_node: SlurmNodeFacts) -> bool:
    """Check whether it is drained because it is the pods' turn, and for no other reason."""
    states = slurm_node.states
    is_drained = "DRAIN" in states and not {"DOWN", "FAIL"} & states
    return is_drained and slurm_node.reason == REASON_PREFIX + TAKEN


def _lift(slurm_node: SlurmNodeFacts) -> Iterator[NodeAction]:
    if "DOWN" in slurm_node.states:
        yield Resume(slurm_node=slurm_node.name)
    elif "DRAIN" in slurm_node.states:
        yield Undrain(slurm_nodes=(slurm_node.name,))


def _out_of_service(slurm_node: SlurmNodeFacts) -> NodeCondition:
    states = slurm_node.states
    if "DOWN" in states:
        word = "Down"
    elif "DRAIN" in states:
        word = "Draining" if slurm_node.is_busy else "Drained"
    else:
        word = "Failing"
    parts = [slurm_node.reason or "no reason given"]
    if slurm_node.reason and slurm_node.reason_by:
        parts.append(f"by {slurm_node.reason_by}")
    if slurm_node.reason_at:
        parts.append(f"since {slurm_node.reason_at:%Y-%m-%dT%H:%M:%SZ}")
    return problem(word, ", ".join(parts))


def _reservation(slurm_node: SlurmNodeFacts) -> str:
    if not slurm_node.reservation:
        return "only jobs of a reservation start there"
    return f"only jobs of reservation {slurm_node.reservation} start there"
