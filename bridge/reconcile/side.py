"""What the extender and the controllers each know that the loop over pods does not."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bridge.domain.ids import KubeNode, PodUid, SlurmNode, WorkloadKey
from bridge.domain.lifecycle.decision import Actor, Facts
from bridge.domain.model.allocation import Seat
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.objects import KubeObject
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Past, View
from bridge.domain.workloads.membership import Membership


class Side(Protocol):
    """What differs between the two programs that act on pods."""

    @property
    def actor(self) -> Actor:
        """Whose pods these are."""
        ...

    def membership(self, pod: Pod) -> Membership | None:
        """Say which workload a pod is of; None where that takes a question to the API server."""
        ...

    async def resolve(self, pod: Pod) -> Membership:
        """Find out which workload a pod is of."""
        ...

    async def declared(self, member: Membership) -> KubeObject | None:
        """Read the object that declares a member's group, if one does; None if there is none."""
        ...

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        """Say whether a pod may take a place in a placeholder that was submitted without it."""
        ...

    def past(self, pod: Pod) -> Past:
        """Whether somebody else may have a write about this pod in flight."""
        ...

    def gather(
        self,
        pod: Pod,
        view: View,
        *,
        uid: WorkloadKey,
        now: datetime,
        since: datetime,
        seat: Seat | None = None,
        beside: Sequence[Pod] = (),
    ) -> Facts:
        """Put together everything the decision looks at.

        Args:
            pod: the pod.
            view: of its placeholders.
            uid: its workload's.
            now: the time.
            since: when it was first seen in its situation.
            seat: a gang's member's place in the allocation, while it waits for its node.
            beside: members that get the same node at the same time.
        """
        ...

    def kube_node(self, slurm_node: SlurmNode) -> KubeNode | None:
        """The Kubernetes node of that Slurm name; None if nobody knows it."""
        ...

    def forget(self, uid: WorkloadKey) -> None:
        """The workload is gone, or in the other program's hands."""
        ...

    def forget_pod(self, uid: PodUid) -> None:
        """The pod is gone, or in the other program's hands."""
        ...
