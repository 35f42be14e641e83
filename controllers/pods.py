"""Endings: what the elected leader looks at from the moment a pod has its node until nothing of it is left in Slurm."""

from datetime import datetime

from bridge.domain.facts import Actor, Facts
from bridge.domain.ids import PodUid
from bridge.domain.jobs import JobPhase
from bridge.domain.pods import Pod
from bridge.domain.view import Past, View
from controllers.kube_nodes import KubeNodes


class Endings:
    """The controllers' `Side` of the loop over pods."""

    actor = Actor.CONTROLLERS

    def __init__(self, kube_nodes: KubeNodes) -> None:
        self._kube_nodes = kube_nodes

    def past(self, _pod: Pod) -> Past:
        """The extender had finished with it when it removed the gate."""
        return Past.HANDED_OVER

    def gather(self, pod: Pod, view: View, *, now: datetime, since: datetime) -> Facts:
        """Look which node the placeholder holds, and whether the pod's own is still there."""
        running = [job for job in view.live if job.phase is JobPhase.RUNNING and job.nodes]
        return Facts(
            pod=pod,
            view=view,
            now=now,
            since=since,
            kube_node=self._kube_nodes.behind(running[0].nodes[0]) if running else None,
            node_is_gone=pod.kube_node is not None and self._kube_nodes.is_gone(pod.kube_node),
        )

    def forget(self, _uid: PodUid) -> None:
        """Nothing is remembered."""
