"""Check whether a pod fits on the node that Slurm chose, by Kubernetes' own accounting.

This runs before a pod is pinned, because a pin cannot be undone: kube-scheduler must find room
there. So it repeats what kube-scheduler's filters check (NodeResourcesFit, NodePorts,
TaintToleration, NodeUnschedulable, NodeAffinity). And whether Slurm granted as much as the pod takes:
one whose job got less would use what Slurm gives to others.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model import demand, hybrid
from bridge.domain.model.allocation import TaskGrant
from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import exactness, gres
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import BoundPod, Pod
from bridge.domain.model.volumes import Reach
from bridge.domain.request import selection
from slurmruntime.model import affinity
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts
from slurmruntime.values import quantities
from slurmruntime.values.ids import PodUid

ANY_IP = "0.0.0.0"  # noqa: S104  # a value to compare with, nothing is bound to it


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeLimits:
    """Limits on a pod's nodes that Slurm does not know."""

    counted: Mapping[str, str] = field(default_factory=dict)
    """Extended resources that are GRES, and which: Slurm counts them itself."""
    reaches: tuple[Reach, ...] = ()
    """From where each of its volumes can be used."""
    hybrid: HybridRule = HybridRule.NONE
    """What keeps native jobs of hybrid nodes off containers that still stop."""
    has_whole_node: bool = False
    """Its job requests whole nodes, or has them."""

    def why_unsafe(self, wanted: Demand, kube_node: KubeNodeFacts, slurm_gres: str | None) -> str:
        """Return why a pod must not be placed on a node although it would fit; "" if it may.

        Args:
            wanted: what the pod takes.
            slurm_gres: the node's GRES in Slurm; None if that is not known now.
        """
        return hybrid.why_refused(
            kube_node, self.hybrid, has_whole_node=self.has_whole_node
        ) or exactness.why_refused(wanted, kube_node, slurm_gres, self.counted)


NO_LIMITS = KubeLimits()


@dataclass(frozen=True, slots=True)
class FitResult:
    """Whether the pod fits, and in words what prevents it; "" if nothing does."""

    fit: Fit
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """What takes room on the node: a pod that is bound there or assigned by us, or several."""

    demand: Demand
    host_ports: tuple[tuple[str, int, str], ...] = ()
    is_deleting: bool = False


def tenants(
    bound: Iterable[BoundPod], assigned: Iterable[Pod], *, outlived: Container[PodUid] = ()
) -> tuple[Tenant, ...]:
    """Return the pods that count on one node.

    Args:
        bound: other pods that Kubernetes has bound to the node; ended ones no longer count.
        assigned: our pods that are pinned or bound to it.
        outlived: our pods whose placeholder has ended: they will be evicted soon.
    """
    charged: list[BoundPod | Pod] = [*bound, *assigned]
    return tuple(
        Tenant(
            demand=pod.demand,
            host_ports=pod.host_ports,
            is_deleting=pod.is_deleting or pod.uid in outlived,
        )
        for pod in charged
        if not pod.is_terminal
    )


def check(pod: Pod, kube_node: KubeNodeFacts | None, others: Iterable[Tenant]) -> FitResult:
    """Check whether the pod fits beside the others.

    The result is TERMINATING if it will fit once the pods that are leaving are gone.

    Args:
        kube_node: the node behind the one Slurm chose; None if Kubernetes has none.
        others: everything else that takes room there (`tenants`).
    """
    if kube_node is None:
        return FitResult(Fit.MISFIT, "Kubernetes has no such node")
    if problem := _node_problem(pod, kube_node):
        return FitResult(Fit.MISFIT, problem)
    everyone = tuple(others)
    now = ", ".join(_shortages(pod, kube_node.allocatable, everyone))
    if not now:
        return FitResult(Fit.FITS)
    staying = tuple(other for other in everyone if not other.is_deleting)
    later = ", ".join(_shortages(pod, kube_node.allocatable, staying))
    return FitResult(Fit.MISFIT, later) if later else FitResult(Fit.TERMINATING, now)


def shortfall(
    pod: Pod,
    job: SlurmJob,
    slot: int,
    gpu_resources: Mapping[str, str],
    milli_per_cpu: int = quantities.MILLI,
) -> str:
    """Return in which resources Slurm granted less than the pod takes, in words; "" if in none.

    A waiting job can be changed by its user, and by administrators. The comparison is with the pod,
    not with what was submitted: Slurm may round up, and an administrator may grant more.

    Args:
        slot: the pod's place in the allocation; 0 for a pod without a gang.
        gpu_resources: Kubernetes resource name → GRES name.
        milli_per_cpu: how many thousandths of a Kubernetes CPU one CPU of Slurm is.
    """
    grants = (part.task_grant for part in job.components for _ in range(part.tasks))
    granted = next(islice(grants, slot, None), None)
    if granted is None:
        return ""
    missing = ", ".join(_missing(pod, granted, gpu_resources, milli_per_cpu))
    return f"it has {missing} that the pod requests" if missing else ""


def lacking(pod: Pod, kube_node: KubeNodeFacts, counted: Container[str]) -> str:
    """Return what the node never has enough of, in words; "" if it may hold the pod.

    Slurm counts CPUs, memory and GRES. Whatever else a pod requests must at least be allocatable on
    a node, or Slurm would start its job there again and again. What other pods take of it changes,
    and is for `check`.

    counted: extended resources that Slurm counts itself.
    """
    wanted, allocatable = pod.demand, kube_node.allocatable
    if wanted.ephemeral_storage_bytes > allocatable.ephemeral_storage_bytes:
        return f"{quantities.mebibytes(wanted.ephemeral_storage_bytes)}Mi of ephemeral-storage"
    for name, count in sorted(wanted.extended.items()):
        if name not in counted and count > allocatable.extended.get(name, 0):
            return f"{count} {name}"
    return "room for a pod" if wanted.pods > allocatable.pods else ""


def _node_problem(pod: Pod, kube_node: KubeNodeFacts) -> str:
    if kube_node.is_deleting:
        return "the node is being deleted"
    if not kube_node.is_ready:
        return "the node is not ready"
    if taint := affinity.untolerated(affinity.hard_taints(kube_node), pod.tolerations):
        return f"the pod does not tolerate the node's taint {taint.key}:{taint.effect}"
    if not selection.selects(pod, kube_node):
        return "the node does not match the pod's node selector or affinity"
    return ""


def _shortages(pod: Pod, allocatable: Allocatable, others: tuple[Tenant, ...]) -> Iterator[str]:
    used = demand.total(other.demand for other in others)
    wanted = pod.demand
    if wanted.pods + used.pods > allocatable.pods:
        yield f"too many pods ({allocatable.pods} allowed)"
    amounts = {
        "cpu": (wanted.milli_cpu, allocatable.milli_cpu - used.milli_cpu),
        "memory": (wanted.memory_bytes, allocatable.memory_bytes - used.memory_bytes),
        "ephemeral-storage": (
            wanted.ephemeral_storage_bytes,
            allocatable.ephemeral_storage_bytes - used.ephemeral_storage_bytes,
        ),
        **{
            name: (count, allocatable.extended.get(name, 0) - used.extended.get(name, 0))
            for name, count in sorted(wanted.extended.items())
        },
    }
    for name, (asked, free) in amounts.items():
        if asked > max(free, 0):
            yield _insufficient(name, asked, max(free, 0))
    taken: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for other in others:
        for protocol, port, ip in other.host_ports:
            taken[protocol, port].add(ip)
    for protocol, port, ip in pod.host_ports:
        held = taken.get((protocol, port), set())
        if held and (ip == ANY_IP or not held.isdisjoint((ip, ANY_IP))):
            yield f"host port {port}/{protocol} is taken"


def _insufficient(name: str, asked: int, free: int) -> str:
    """Describe a shortage; MiB are rounded so that what is asked for never looks available."""
    match name:
        case "cpu":
            shown = f"{asked}m asked, {free}m free"
        case "memory" | "ephemeral-storage":
            shown = f"{quantities.mebibytes(asked)}Mi asked, {free // quantities.MIB}Mi free"
        case _:
            shown = f"{asked} asked, {free} free"
    return f"insufficient {name} ({shown})"


def _missing(
    pod: Pod, granted: TaskGrant, gpu_resources: Mapping[str, str], milli_per_cpu: int
) -> Iterator[str]:
    wanted = pod.demand
    if granted.cpus < (least := wanted.cpus(milli_per_cpu)):
        has, needs = (quantities.cpu_quantity(n, milli_per_cpu) for n in (granted.cpus, least))
        yield f"{has} of the {needs} CPUs"
    if granted.memory_mib is not None and granted.memory_mib < wanted.memory_mib:
        yield f"{granted.memory_mib} of the {wanted.memory_mib} MiB"
    kinds = gres.by_kind(demand.gres(wanted.extended, gpu_resources))
    for kind, count in sorted(kinds.items()):
        if granted.gres.get(kind, 0) < count:
            yield f"{granted.gres.get(kind, 0)} of the {count} {kind}"
