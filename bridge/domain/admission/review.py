"""Review a pod at CREATE: what is added to it, and why it is refused.

All of this must happen at CREATE: a gate cannot be added later, schedulerName never changes, and if
a finalizer were added after the submit, a process that died in between would leak a job. The
functions are pure, and those that patch are idempotent, because the API server may call them again
after other webhooks.

Protection is not done here but in admission policies, which need no process of ours: they know the
requester, so they can tell a real DaemonSet's pod from a forged one. Pods whose shape shows that
they are not ours to place are left alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from bridge.domain import caps
from bridge.domain.admission import authorship, binder, by_class
from bridge.domain.admission.authorship import Authorship
from bridge.domain.admission.by_class import Asker
from bridge.domain.caps import Sizes
from bridge.domain.lifecycle.decision import WhenFull
from bridge.domain.model.claims.asking import MOST_CLAIMS
from bridge.domain.model.claims.by_class import Ways
from bridge.domain.model.demand import Demand
from bridge.domain.request import build, overrides, permit
from bridge.domain.request.build import Defaults
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.rules import POD, Policy, Requester
from bridge.domain.workloads import kinds, own_keys
from slurmruntime.model import json_patch
from slurmruntime.model.affinity import Toleration
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names
from slurmruntime.values.faults import MOST_FAULTS, Fault, bounded

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Marks the mirror pod of a static pod:
<https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/>."""

_SHOWN = 80
"""The number of characters of a faulty value to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinityTerm:
    """One required term of a pod's affinity to other pods."""

    kind: str
    """`podAffinity` or `podAntiAffinity`."""
    topology_key: str
    labels: frozenset[str]
    """The keys that its selector uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A pod that is about to be created, as far as admission examines it."""

    name: str = ""
    """For people: its name, or the prefix of the one it will get (`job-…`)."""
    namespace: str = ""
    requester: Requester = field(default_factory=Requester)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_kinds: tuple[str, ...] = ()
    controller_uid: str = ""
    """The uid of the controlling owner; "" without one."""
    scheduler_name: str = ""
    node_name: str = ""
    demand: Demand = field(default_factory=Demand)
    deadline_s: int | None = None
    """`spec.activeDeadlineSeconds`."""
    node_choices: tuple[str, ...] = ()
    """Paths in the spec that choose nodes."""
    resource_claims: tuple[str, ...] = ()
    """The names of its entries."""
    claim_templates: Mapping[str, str] = field(default_factory=dict)
    """The templates of those claims that have one, by the entry's name."""
    class_askers: tuple[Asker, ...] = ()
    """The containers that may ask for devices by their classes."""
    volume_sources: frozenset[str] = frozenset()
    """The kinds of its volumes, as the fields that say so: `configMap`, `persistentVolumeClaim` …"""
    is_grouped: bool = False
    """kube-scheduler would schedule it together with others (`spec.schedulingGroup`)."""
    hard_spreads: tuple[int, ...] = ()
    """Indices of the `topologySpreadConstraints` with DoNotSchedule."""
    required_pod_affinities: tuple[PodAffinityTerm, ...] = ()
    preferences: tuple[str, ...] = ()
    """Paths in the spec that only rank nodes."""
    gates: tuple[str, ...] | None = None
    """None if the list does not exist: a patch must create it then."""
    finalizers: tuple[str, ...] | None = None
    field_operations: tuple[str, ...] = ()
    """The operation of each manager of its fields: `Update`, `Apply`."""
    tolerations: tuple[Toleration, ...] | None = None
    sizes: Sizes = field(default_factory=Sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one review; the pod is refused if there are faults."""

    patch: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Check whether there are no faults."""
        return not self.faults


def mutate(
    pod: Draft,
    policy: Policy,
    scheduler_name: str = names.SCHEDULER_NAME,
    *,
    devices: Ways | None = None,
    extender_binds: bool = False,
) -> Verdict:
    """Hand the pod to Slurm.

    Add label, schedulerName, gate, finalizer, toleration and the requester, as far as the pod lacks
    them. Requests for `devices` of a class become claims. The record of who wrote which field is
    dropped if the pod is not created by server-side apply. If `extender_binds`, pods that need nothing else from
    kube-scheduler get a scheduler name that it does not serve.
    """
    if not is_ours_to_place(pod, scheduler_name):
        return Verdict()
    pod, claims = _with_claims(pod, devices or Ways())
    for_scheduler = not extender_binds or binder.reserved(
        pod.volume_sources, is_grouped=pod.is_grouped
    )
    name = scheduler_name if for_scheduler else names.binder(scheduler_name)
    operations = [*claims, *_operations(pod, policy, name)]
    if pod.field_operations and "Apply" not in pod.field_operations:
        # The API server then keeps none at later updates either, which halves their cost. A later
        # server-side apply of such a pod finds one manager, `before-first-apply`.
        operations.append(json_patch.add("/metadata/managedFields", []))
    return Verdict(patch=tuple(operations))


def admit(
    pod: Draft,
    defaults: Defaults,
    policy: Policy,
    scheduler_name: str = names.SCHEDULER_NAME,
    *,
    extender_binds: bool = False,
) -> Verdict:
    """Do both in one call: return everything that is wrong with the pod, else hand it to Slurm.

    The API server calls again after another webhook has changed the pod. A recorded author is
    overwritten here, not refused; the policies check changes made after the last call.
    """
    as_patched, _ = _with_claims(pod, defaults.devices)
    faults = bounded(_faults(as_patched, defaults, policy, scheduler_name))
    if not is_ours_to_place(pod, scheduler_name):
        return Verdict(faults=faults)
    if faults:
        return Verdict(faults=faults, warnings=_warned(pod))
    handed_over = mutate(
        pod,
        policy,
        scheduler_name,
        devices=defaults.devices,
        extender_binds=extender_binds,
    )
    return replace(handed_over, warnings=_warned(pod))


def validate(
    pod: Draft, defaults: Defaults, policy: Policy, scheduler_name: str = names.SCHEDULER_NAME
) -> Verdict:
    """Return everything that is wrong with the pod as it is after every mutation."""
    is_ours = is_ours_to_place(pod, scheduler_name)
    misattributed = authorship.author_faults(_authorship(pod)) if is_ours else ()
    faults = (*_faults(pod, defaults, policy, scheduler_name), *misattributed)
    return Verdict(faults=bounded(faults), warnings=_warned(pod) if is_ours else ())


def is_ours_to_place(pod: Draft, scheduler_name: str) -> bool:
    """Check that it is not a node's own pod, not bound by hand, and not another scheduler's."""
    return (
        not pod.node_name
        and MIRROR_ANNOTATION not in pod.annotations
        and not {"DaemonSet", "Node"} & set(pod.owner_kinds)
        and pod.scheduler_name
        in ("", names.DEFAULT_SCHEDULER_NAME, *names.schedulers(scheduler_name))
    )


def _faults(
    pod: Draft, defaults: Defaults, policy: Policy, scheduler_name: str
) -> tuple[Fault, ...]:
    preset = tuple(_preset(pod))
    if not is_ours_to_place(pod, scheduler_name):
        return preset
    asked, malformed = overrides.parse(pod.annotations)
    return (
        *preset,
        *caps.faults(pod.sizes, defaults.caps),
        *malformed,
        *_not_permitted(pod, asked, policy),
        *build.faults(pod.demand, asked, defaults),
        *_impossible(pod, defaults.devices),
        *_unknown_choices(pod),
        *own_keys.faults(pod.annotations),
        *own_keys.faults(pod.labels, "metadata.labels"),
    )


def _with_claims(pod: Draft, ways: Ways) -> tuple[Draft, tuple[Operation, ...]]:
    """Return the pod with claims for the devices that it asks for by class, and the patch.

    A pod whose requests cannot become claims stays as it is, and is refused for it.
    """
    askers = pod.class_askers
    if not askers or any(by_class.faults(askers, ways)):
        return pod, ()
    claimed = replace(
        pod,
        demand=by_class.without(pod.demand, ways),
        resource_claims=(
            *pod.resource_claims,
            *by_class.names(askers, ways, pod.resource_claims),
        ),
        class_askers=(),
    )
    return claimed, tuple(by_class.patch(askers, ways, pod.resource_claims))


def _operations(pod: Draft, policy: Policy, scheduler_name: str) -> Iterator[Operation]:
    yield from authorship.record(_authorship(pod), policy)
    if not pod.labels:
        yield json_patch.add("/metadata/labels", {names.BRIDGED_LABEL: "true"})
    elif pod.labels.get(names.BRIDGED_LABEL) != "true":
        yield json_patch.add(f"/metadata/labels/{json_patch.escape(names.BRIDGED_LABEL)}", "true")
    if pod.scheduler_name != scheduler_name:
        yield json_patch.add("/spec/schedulerName", scheduler_name)
    if names.GATE not in (pod.gates or ()):
        yield _append("/spec/schedulingGates", {"name": names.GATE}, pod.gates)
    if names.FINALIZER not in (pod.finalizers or ()):
        yield _append("/metadata/finalizers", names.FINALIZER, pod.finalizers)
    yield from tolerating(pod)


def tolerating(pod: Draft) -> Iterator[Operation]:
    """Yield the patch that gives a pod our toleration, unless one of its own covers it."""
    if not any(map(tolerates_managed_nodes, pod.tolerations or ())):
        toleration = {"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}
        yield _append("/spec/tolerations", toleration, pod.tolerations)


def _authorship(pod: Draft) -> Authorship:
    return Authorship(
        kind=POD,
        namespace=pod.namespace,
        requester=pod.requester,
        annotations=pod.annotations,
        controller_uid=pod.controller_uid,
    )


def _not_permitted(pod: Draft, asked: Overrides, policy: Policy) -> Iterator[Fault]:
    ask = permit.Ask(overrides=asked, deadline_s=pod.deadline_s, node_choices=pod.node_choices)
    yield from authorship.not_permitted(_authorship(pod), ask, policy)


def _append(path: str, value: object, existing: tuple[object, ...] | None) -> Operation:
    if existing is None:
        return json_patch.add(path, [value])
    return json_patch.add(f"{path}/-", value)


def tolerates_managed_nodes(toleration: Toleration) -> bool:
    """Check whether the toleration covers our taint with any value and any effect."""
    return (
        toleration.operator == "Exists"
        and toleration.key in ("", names.MANAGED_NODE_TAINT)
        and not toleration.effect
    )


def _preset(pod: Draft) -> Iterator[Fault]:
    if names.JOB_ID_LABEL in pod.labels:
        yield Fault(
            f"metadata.labels[{names.JOB_ID_LABEL}]",
            "leave it out: slurm-bridge writes it when the pod has a Slurm job",
        )
    for annotation in names.WRITTEN_AT_THE_PIN:
        if annotation in pod.annotations:
            yield Fault(
                f"metadata.annotations[{annotation}]",
                "leave it out: slurm-bridge writes it when Slurm has chosen a node",
            )
    if names.WHEN_LOST_ANNOTATION in pod.annotations:
        yield Fault(
            f"metadata.annotations[{names.WHEN_LOST_ANNOTATION}]",
            "leave it out: it is an operator's answer once Slurm has lost the pod's job",
        )


def _unknown_choices(pod: Draft) -> Iterator[Fault]:
    value = pod.annotations.get(names.WHEN_FULL_ANNOTATION, WhenFull.WAIT)
    if value not in set(WhenFull):
        accepted = " or ".join(WhenFull)
        path = f"metadata.annotations[{names.WHEN_FULL_ANNOTATION}]"
        yield Fault(path, f"expected {accepted}, found {value[:_SHOWN]!r}")


def _impossible(pod: Draft, ways: Ways) -> Iterator[Fault]:
    """Refuse what Slurm cannot honour; ignoring it would be worse."""
    unseen = [t for t in pod.required_pod_affinities if not _is_exclusive_topology(t, pod)]
    for kind in dict.fromkeys(term.kind for term in unseen):
        yield Fault(
            f"spec.affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution",
            "cannot be honoured: Slurm does not know which pods run where; use preferred terms, "
            f"node affinity, or the annotation {names.REQUEST_PREFIX}exclusive",
        )
    for index in pod.hard_spreads:
        yield Fault(
            f"spec.topologySpreadConstraints[{index}].whenUnsatisfiable",
            "DoNotSchedule cannot be honoured: Slurm does not know which pods run where; "
            "use ScheduleAnyway",
        )
    if pod.resource_claims and not ways.takes_claims:
        yield Fault(
            "spec.resourceClaims",
            "cannot be honoured: Slurm does not know them; request extended resources such as "
            f"nvidia.com/gpu, or use the annotation {names.REQUEST_PREFIX}gres (an administrator can "
            "map device classes to GRES: setting controllers.device_profiles)",
        )
    elif (many := len(pod.resource_claims)) > MOST_CLAIMS:
        words = (
            f"expected at most {MOST_CLAIMS} claims (each request by a class is one), found {many}"
        )
        yield Fault("spec.resourceClaims", words)
    unusable = tuple(by_class.faults(pod.class_askers, ways))
    yield from unusable or by_class.leftover_faults(pod.class_askers, ways)


def _is_exclusive_topology(term: PodAffinityTerm, pod: Draft) -> bool:
    """Check whether the group's own controller wrote the term.

    Such a term is honoured: Slurm is asked for one domain, and the leader is bound first.
    """
    return any(
        pod.annotations.get(wanted) == term.topology_key and set() < term.labels <= labels
        for wanted, labels in kinds.EXCLUSIVE_TERMS.items()
    )


def _warned(pod: Draft) -> tuple[str, ...]:
    return tuple(islice(_warnings(pod), MOST_FAULTS))


def _warnings(pod: Draft) -> Iterator[str]:
    for path in pod.preferences:
        yield f"{path}: has no effect, Slurm chooses the node"
    yield from overrides.effectless(pod.annotations)
    yield from own_keys.without_effect(pod.labels, "metadata.labels")
