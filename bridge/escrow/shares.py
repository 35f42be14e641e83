"""Ask Slurm, never a cache, whether a pod's job still holds its share of the node, and nobody else may get it."""

from collections.abc import Awaitable, Callable, Collection

from bridge.domain.model import hybrid
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from bridge.slurm import decode
from bridge.slurm import nodes as slurm_nodes
from slurmclient.errors import SlurmError
from slurmclient.watching import listing
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, KubeNode, PodUid, SlurmNode

_DRAINED_WITHIN_S = 3.0
"""How long a binding waits for the drain: kube-scheduler waits for five seconds, and tries again after one."""

_AGAIN_S = 0.2

LastCheck = Callable[[Pod, KubeNode], Awaitable[str]]
"""Returns why a pod must no longer be bound to the node that it was given; "" if it may."""


def takes_native_jobs(node: KubeNodeFacts) -> bool:
    """Check whether jobs that are not ours may start on a node: none do on external nodes."""
    return not nodes.is_external(node) or nodes.is_hybrid(node)


async def backed(slurm: SlurmClient, pods: Collection[Pod]) -> frozenset[PodUid]:
    """Return the pods whose job still has its nodes: it has neither ended nor been requeued.

    Raises SlurmError if the jobs could not be read.
    """
    ids: set[JobId] = {pod.job_id for pod in pods if pod.job_id is not None}
    states = await listing.states(slurm, ids)
    placed = {job_id for job_id, state in states.items() if _has_nodes(state)}
    return frozenset(pod.uid for pod in pods if pod.job_id in placed)


def last_check(
    slurm: SlurmClient, kube_nodes: Cache[KubeNodeFacts], rule: HybridRule, clock: Clock
) -> LastCheck:
    """Return a function that checks a pod's job once more just before the pod is bound.

    A job may end while its pod is given its node. A script that asks in between is answered `go`, as no
    replica sees the pod there yet. So the pod must not start any more: its job is checked again once
    every replica can see the pod. A node that takes turns must be drained before that: the controllers do
    it as soon as they see the pod.
    """

    async def why_open(name: SlurmNode) -> str:
        ends_at = clock.monotonic() + _DRAINED_WITHIN_S
        while why := hybrid.why_open(await slurm_nodes.node(slurm, name), rule):
            if clock.monotonic() >= ends_at:
                return why
            await clock.sleep(_AGAIN_S)
        return ""

    async def check(pod: Pod, kube_node: KubeNode) -> str:
        node = kube_nodes.get(kube_node)
        if node is not None and not takes_native_jobs(node):
            return ""
        try:
            if rule is HybridRule.ALTERNATE and (
                why := await why_open(nodes.slurm_name(node) if node else SlurmNode(kube_node))
            ):
                return why
            is_backed = pod.uid in await backed(slurm, (pod,))
        except SlurmError as error:
            return f"cannot check whether Slurm job {pod.job_id} still has {kube_node}: {error}"
        return "" if is_backed else f"Slurm job {pod.job_id} no longer has {kube_node}"

    return check


def _has_nodes(states: frozenset[str]) -> bool:
    try:
        return decode.phase_of(states) is not JobPhase.ENDED and "PENDING" not in states
    except ValueError:
        return False  # a state that we do not know
