"""How exactly a pod gets on a node what Slurm gave it: the very devices and cores, or only as many.

Slurm chooses devices and cores, and so does the kubelet: its device plugins and its static CPU manager
know nothing of Slurm's choice. On an external node only the kubelet hands anything out, so equal counts
are enough to keep two pods from getting the same. On a hybrid node, slurmd hands the same devices and
cores to native jobs by Slurm's choice: there, one device can end up in two hands.

So nothing is pinned to a hybrid node for which the two choices could differ. They cannot where the pod
takes every device of a kind that the node has on either side: no job then has any of them.

A claim is different: it is written with the devices behind the indexes that Slurm gave, so there is only
Slurm's choice. On an external node we numbered the devices; on a hybrid one slurmd did, by its gres.conf,
which cannot be read from here. So a claim is placed there only where the administrator vouches for the order.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bridge.domain.model import demand
from bridge.domain.model.claims import profiles
from bridge.domain.model.cores import agents
from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import gres
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode

STATIC = "static"
"""The CPU manager policy that gives containers cores of their own."""
BY_NAME = "by-name"
"""The order of devices in gres.conf that makes Slurm's indexes mean the devices of ResourceSlices."""


class Exactness(enum.StrEnum):
    """How exactly a pod gets what Slurm gave it."""

    EXACT = "exact"
    """The very devices or cores: no other choice is possible."""
    COUNTS_ONLY = "counts only"
    """As many, and no other pod has them; but perhaps not those that Slurm names."""
    REFUSED = "refused"
    """Two could get the same, so some pods are not placed there."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The answer for one node, for devices or for cores."""

    exactness: Exactness | None
    """None: the node has none, or it is not Slurm's."""
    reason: str = ""


_NOT_APPLICABLE = Ruling(None)


def devices(
    kube_node: KubeNodeFacts, slurm_gres: str | None, gpu_resources: Mapping[str, str]
) -> Ruling:
    """Rule on the node's devices.

    Args:
        kube_node: the node, with what its device plugins report.
        slurm_gres: its GRES in Slurm (`gpu:a100:4,nic:1`); "" if it has none, None if it was not
            read.
        gpu_resources: Kubernetes resource name → GRES name.
    """
    reported = _by_kind(kube_node.allocatable.extended, gpu_resources)
    if not nodes.is_wanted(kube_node):
        return _NOT_APPLICABLE
    if not reported:
        return _of_claims(kube_node, slurm_gres, gpu_resources)
    if not nodes.is_hybrid(kube_node):
        if all(count == 1 for count in reported.values()):
            return Ruling(Exactness.EXACT, "one device of each kind")
        return Ruling(
            Exactness.COUNTS_ONLY, "the kubelet chooses which devices; only it hands them out here"
        )
    if slurm_gres is None:
        return Ruling(None, "not known which devices Slurm has here")
    in_slurm = gres.by_kind(gres.counted(slurm_gres))
    both = {kind: count for kind, count in reported.items() if in_slurm.get(kind)}
    if not both:
        text = f"Slurm has no {_listed(reported)} here, and places no pod that requests any"
        return Ruling(Exactness.EXACT, text)
    if all(count == 1 == in_slurm[kind] for kind, count in both.items()):
        return Ruling(Exactness.EXACT, "one device of each kind")
    text = (
        f"the kubelet and slurmd each choose among {_listed(both)}: "
        "only pods that request all of them are placed here"
    )
    return Ruling(Exactness.REFUSED, text)


def _of_claims(
    kube_node: KubeNodeFacts, slurm_gres: str | None, gpu_resources: Mapping[str, str]
) -> Ruling:
    """Rule on a hybrid node without device plugins, if its label vouches for the order of its devices."""
    if not nodes.is_hybrid(kube_node) or names.DEVICE_ORDER_LABEL not in kube_node.labels:
        return _NOT_APPLICABLE
    if slurm_gres is None:
        return Ruling(None, "not known which devices Slurm has here")
    kinds = {
        gres_name.partition(":")[0]
        for name, gres_name in gpu_resources.items()
        if name.startswith(profiles.COUNTED)
    }
    present = {k: n for k, n in gres.by_kind(gres.counted(slurm_gres)).items() if k in kinds}
    if not present:
        return _NOT_APPLICABLE
    if why := why_not_claimed(present, kube_node, slurm_gres):
        return Ruling(Exactness.REFUSED, why)
    text = f"claims get the very devices of {_listed(present)} that Slurm chose"
    return Ruling(Exactness.EXACT, text)


def cores(kube_node: KubeNodeFacts, pinning: Collection[KubeNode] = ()) -> Ruling:
    """Rule on the node's cores; `pinning` are the nodes whose node agent is alive."""
    if not nodes.is_wanted(kube_node):
        return _NOT_APPLICABLE
    if agents.pins(kube_node, pinning):
        return Ruling(Exactness.EXACT, "the node agent gives pods the very cores that Slurm chose")
    if not nodes.is_hybrid(kube_node):
        return Ruling(
            Exactness.COUNTS_ONLY, "the kubelet chooses which cores; only it hands them out here"
        )
    manager = _cpu_manager(kube_node)
    if manager == STATIC:
        text = (
            "the kubelet's static CPU manager and slurmd each choose cores: "
            "Guaranteed pods of whole CPUs are not placed here"
        )
        return Ruling(Exactness.REFUSED, text)
    text = "containers run on any core, for as much time as they requested"
    if manager != agents.NO_MANAGER:
        text = (
            "not known whether the kubelet gives containers cores of their own: "
            f"label the node {names.CPU_MANAGER_LABEL}={STATIC} or ={agents.NO_MANAGER}"
        )
    return Ruling(Exactness.COUNTS_ONLY, text)


def why_refused(
    wanted: Demand,
    kube_node: KubeNodeFacts,
    slurm_gres: str | None,
    gpu_resources: Mapping[str, str],
) -> str:
    """Return why a pod must not be placed on a node although it would fit; "" if it may.

    Args:
        wanted: what the pod takes.
        slurm_gres: the node's GRES in Slurm; None if that is not known now: then only a pod that
            takes all devices that the kubelet has is placed, and none that claims any.
        gpu_resources: Kubernetes resource name → GRES name.
    """
    if not nodes.is_hybrid(kube_node):
        return ""
    claimed = {
        name: count
        for name, count in wanted.extended.items()
        if name.startswith(profiles.COUNTED) and count
    }
    if why := why_not_claimed(_by_kind(claimed, gpu_resources), kube_node, slurm_gres):
        return why
    plugins = {name: count for name, count in wanted.extended.items() if name not in claimed}
    asked = _by_kind(plugins, gpu_resources)
    reported = _by_kind(kube_node.allocatable.extended, gpu_resources)
    in_slurm = reported if slurm_gres is None else gres.by_kind(gres.counted(slurm_gres))
    for kind, count in sorted(asked.items()):
        # Without any in Slurm, or too few, Slurm itself places none.
        if in_slurm.get(kind) and not count == reported.get(kind) == in_slurm[kind]:
            return (
                f"slurmd hands out devices of {kind} there too, and may choose the same: "
                f"{count} requested, {reported.get(kind, 0)} in Kubernetes, {in_slurm[kind]} in Slurm; "
                "only a pod that requests all of them is placed there"
            )
    if _cpu_manager(kube_node) == STATIC and has_cores_of_its_own(wanted):
        return (
            "slurmd hands out cores there too, and the kubelet's static CPU manager may choose the "
            "same for a Guaranteed pod of whole CPUs; make its memory limit larger than its request"
        )
    return ""


def why_not_claimed(
    claimed: Mapping[str, int], kube_node: KubeNodeFacts, slurm_gres: str | None
) -> str:
    """Return why a claim must get nothing of these kinds on a node; "" if it may.

    Args:
        claimed: how many devices are claimed, by kind.
        slurm_gres: the node's GRES in Slurm; None if that is not known now.
    """
    if not claimed or not nodes.is_hybrid(kube_node):
        return ""
    if slurm_gres is None:
        return f"not known now which devices Slurm has there, and {_listed(claimed)} claimed"
    in_slurm = gres.counted(slurm_gres)
    for kind in sorted(claimed):
        records = [
            name for name, count in in_slurm.items() if name.partition(":")[0] == kind and count
        ]
        # Without any in Slurm, Slurm itself places none.
        if len(records) > 1:
            return (
                f"slurmd has {kind} of several types there ({', '.join(records)}), "
                "and nothing says which type each of its indexes has"
            )
        if records and kube_node.labels.get(names.DEVICE_ORDER_LABEL) != BY_NAME:
            return (
                f"slurmd numbers the devices of {kind} there, and nothing says which is which of "
                f"the claims' driver: label the node {names.DEVICE_ORDER_LABEL}={BY_NAME} if "
                "gres.conf lists them in the order of their names in ResourceSlices"
            )
    return ""


def unguarded(
    others: Demand,
    kube_node: KubeNodeFacts,
    slurm_gres: str | None,
    gpu_resources: Mapping[str, str],
) -> str:
    """Return which devices slurmd may give away although pods of others hold them; "" if none.

    Nothing can hold them back: a job cannot ask Slurm for a certain device, so a filler might get
    one that is free.

    Args:
        others: what the pods there take together that Slurm did not place.
        slurm_gres: the node's GRES in Slurm; None if that is not known.
        gpu_resources: Kubernetes resource name → GRES name.
    """
    if not nodes.is_hybrid(kube_node):
        return ""
    in_slurm = gres.by_kind(gres.counted(slurm_gres or ""))
    held = _by_kind(others.extended, gpu_resources)
    both = {kind: count for kind, count in held.items() if kind in in_slurm}
    return (
        f"pods of others hold {_listed(both)}, and slurmd may give a job the same" if both else ""
    )


def has_cores_of_its_own(wanted: Demand) -> bool:
    """Check whether a static CPU manager may give the pod exclusive cores.

    That takes a Guaranteed pod with a container of whole CPUs; which containers have whole ones is not
    known here, so any Guaranteed pod of at least one CPU counts.
    """
    is_guaranteed = not {"cpu", "memory"} & set(wanted.unlimited)
    return is_guaranteed and wanted.milli_cpu >= 1000  # noqa: PLR2004  # one CPU


def _by_kind(extended: Mapping[str, int], gpu_resources: Mapping[str, str]) -> Mapping[str, int]:
    # MIG slices are of their GPUs' kind.
    return gres.by_kind(demand.gres(extended, gpu_resources))


def _cpu_manager(kube_node: KubeNodeFacts) -> str:
    return kube_node.labels.get(names.CPU_MANAGER_LABEL, "")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
