"""Decide which pods the extender's leader binds itself, in kube-scheduler's place, and when.

Slurm has chosen the node, and `bridge.domain.request.fit` has made the checks of kube-scheduler's
filters before the pin. So where kube-scheduler would have nothing else to do, our own Binding ends
the wait. It has more to do for pods whose volumes must be bound or attached, and for pods that are
scheduled together. Of a pod's resource claims it would only check that they have devices on the
node, reserved for this pod alone; so do we.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from bridge.domain.admission.binding import refuse_binding
from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model.claims.values import ResourceClaim
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.request.fit import FitResult
from slurmruntime.values.ids import KubeNode, SlurmNode

PLAIN_VOLUMES = frozenset(
    ("configMap", "downwardAPI", "emptyDir", "hostPath", "projected", "secret")
)
"""Kinds of volumes that every node has; kube-scheduler ignores them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingFacts:
    """The facts about a pod that may be bound now."""

    pod: Pod
    job: SlurmJob | None
    """The placeholder that its label names; None if none is known by that id."""
    slurm_node: SlurmNode | None
    """Slurm's name of the node that the pod was assigned."""
    fit: FitResult | None
    """None if there was nothing to compare with."""
    claims: Mapping[str, ResourceClaim] | None = None
    """The pod's resource claims by name, as far as they are known; None without device profiles."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Create the Binding."""

    kube_node: KubeNode


@dataclass(frozen=True, slots=True)
class Report:
    """Report on the pod that it cannot be bound, as kube-scheduler would, and try again."""

    message: str


@dataclass(frozen=True, slots=True)
class Await:
    """Do nothing, and try again: the missing fact may arrive soon."""

    reason: str


@dataclass(frozen=True, slots=True)
class Abstain:
    """Do nothing until the pod changes."""

    reason: str


BindingDecision: TypeAlias = Bind | Report | Await | Abstain


def reserved(volume_sources: AbstractSet[str], *, is_grouped: bool) -> str:
    """Return why kube-scheduler has to bind such a pod; "" if the extender may."""
    if others := sorted(volume_sources - PLAIN_VOLUMES):
        return f"kube-scheduler must handle its volumes ({', '.join(others)})"
    return "kube-scheduler must schedule its group" if is_grouped else ""


def decide(known: BindingFacts) -> BindingDecision:
    """Bind a pod only if its own running placeholder holds the node and the pod fits there."""
    pod, job = known.pod, known.job
    if pod.is_bound or pod.is_terminal or pod.has_foreign_gate or pod.assigned_node is None:
        return Abstain("it already has its node, has ended, or has no node assigned")
    if refusal := refuse_binding(pod, pod.assigned_node):
        return Abstain(refusal)
    volumes = {"persistentVolumeClaim"} if pod.claims else frozenset[str]()
    if why := reserved(volumes, is_grouped=bool(pod.scheduling_group)):
        return Report(f"{why}, and it names a scheduler that is not kube-scheduler")
    if job is None or not job.is_named(pod.job_id, pod.sluid):
        return Await(f"Slurm job {pod.job_id} is not known")
    if job.identity.key != pod.workload:
        return Await(f"Slurm job {job.id} is another workload's")
    if job.phase is not JobPhase.RUNNING or known.slurm_node not in job.nodes:
        return Await(f"Slurm job {job.id} does not hold {pod.assigned_node} now")
    if known.fit is None:
        return Await(f"node {pod.assigned_node} has not been examined yet")
    if known.fit.fit is not Fit.FITS:
        return Report(f"0/1 nodes are available: {known.fit.text}")
    return _without_devices(known, pod.assigned_node) or Bind(pod.assigned_node)


def _without_devices(known: BindingFacts, node: KubeNode) -> Report | Await | None:
    """Return what to do while a claim of the pod lacks its devices there; None if each has them."""
    for resource_claim in known.pod.resource_claims:
        if known.claims is None:
            return Report("its resource claims are not read: set controllers.device_profiles")
        claim = known.claims.get(resource_claim.claim)
        if claim is None:
            return Await(
                f"resource claim {resource_claim.claim or resource_claim.entry} is not known"
            )
        if not claim.is_allocated_to(known.pod.uid, node):
            return Report(
                f"resource claim {claim.name} has no devices on {node} for this pod alone"
            )
    return None
