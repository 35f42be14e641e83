"""Which Kubernetes nodes suit a pod as long as labels and taints do not change."""

from collections.abc import Iterable, Iterator
from functools import cache

from bridge.domain.model.pods import Pod
from slurmruntime.model import nodes
from slurmruntime.model.affinity import Selector, Toleration, untolerated
from slurmruntime.model.nodes import HARD_EFFECTS, TRANSIENT_TAINTS, KubeNodeFacts
from slurmruntime.values import names


def selects(pod: Pod, kube_node: KubeNodeFacts) -> bool:
    """Check whether the pod's node selector and required node affinity match the node."""
    return Selector(pod.node_terms, pod.node_selector).selects(kube_node)


def may_tolerate(tolerations: Iterable[Toleration]) -> bool:
    """Check whether any of them might tolerate a taint that keeps pods off for good, and is not ours."""
    return any(
        not toleration.key.startswith(TRANSIENT_TAINTS)
        and toleration.key != names.MANAGED_NODE_TAINT
        for toleration in tolerations
        if toleration.effect in ("", *HARD_EFFECTS)
    )


def matching(kube_nodes: Iterable[KubeNodeFacts], pod: Pod) -> Iterator[KubeNodeFacts]:
    """Yield the nodes that suit the pod as long as labels and taints do not change.

    Temporary conditions (a cordon, a node that is not ready or under pressure) do not count: the
    job may wait longer than they last, Slurm drains such a node meanwhile, and the fit check looks
    again.
    """
    selector = Selector(pod.node_terms, pod.node_selector)
    bears = cache(lambda taints: untolerated(taints, pod.tolerations) is None)
    return (
        kube_node
        for kube_node in kube_nodes
        if not kube_node.is_deleting
        and selector.selects(kube_node)
        and bears(nodes.lasting_taints(kube_node))
    )
