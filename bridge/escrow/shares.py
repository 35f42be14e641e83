"""Whose Slurm job still has its share of a node: asked of Slurm anew, never of what was read before."""

from collections.abc import Awaitable, Callable, Collection

from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from bridge.slurm import decode
from bridge.slurm.listed import listing
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import SlurmError
from slurmruntime.values.ids import JobId, KubeNode, PodUid

LastLook = Callable[[Pod, KubeNode], Awaitable[str]]
"""Returns why a pod that has its node must not be bound to it any more; "" if it may."""


def takes_native_jobs(node: KubeNodeFacts) -> bool:
    """Check whether jobs of others may start on a node: none do on external ones."""
    return not nodes.is_external(node) or nodes.is_hybrid(node)


async def backed(slurm: SlurmClient, pods: Collection[Pod]) -> frozenset[PodUid]:
    """Return those whose job has its share of the nodes: it has neither ended nor been requeued.

    Raises:
        SlurmError: they could not be read.
    """
    ids: set[JobId] = {pod.job_id for pod in pods if pod.job_id is not None}
    states = await listing.states(slurm, ids)
    placed = {job_id for job_id, found in states.items() if _has_nodes(found)}
    return frozenset(pod.uid for pod in pods if pod.job_id in placed)


def last_look(slurm: SlurmClient, kube_nodes: Cache[KubeNodeFacts]) -> LastLook:
    """Return what looks at a pod's job once more when it is about to be bound.

    A job may end while its pod is given its node. Whoever asks in between is let go, as nobody sees
    the pod there yet. So the pod must not start any more: its job is looked at when all can see it.
    """

    async def look(pod: Pod, kube_node: KubeNode) -> str:
        node = kube_nodes.get(kube_node)
        if node is not None and not takes_native_jobs(node):
            return ""
        try:
            is_backed = pod.uid in await backed(slurm, (pod,))
        except SlurmError as error:
            return f"whether Slurm job {pod.job_id} still has {kube_node} is not known: {error}"
        return "" if is_backed else f"Slurm job {pod.job_id} has lost {kube_node} meanwhile"

    return look


async def no_look(_pod: Pod, _kube_node: KubeNode) -> str:
    """Let every pod be bound: the setting is off."""
    return ""


def _has_nodes(states: frozenset[str]) -> bool:
    try:
        return decode.phase_of(states) is not JobPhase.ENDED and "PENDING" not in states
    except ValueError:
        return False  # a state that we do not know
