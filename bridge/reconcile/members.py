"""Index the observed pods by workload, and know which of them this side acts on."""

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.model.pods import Pod
from bridge.domain.observation.deletions import Deletions
from bridge.domain.workloads import membership
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Groups
from bridge.reconcile.side import Side
from slurmruntime.values.ids import PodUid, WorkloadKey


class Members:
    """The pods of one side by workload; does no I/O."""

    def __init__(self, side: Side) -> None:
        self._actor = side.actor
        self._workloads = side.workloads
        self._groups = Groups()
        self._deletions = Deletions()
        self._memberships: dict[PodUid, Membership] = {}
        """Memberships of gated pods, where known: the fields they follow from do not change after
        CREATE.
        """

    def of(self, key: WorkloadKey) -> list[tuple[Membership, Pod]]:
        """Return every pod of a workload, in no particular order."""
        return self._groups.members(key)

    def key(self, uid: PodUid) -> WorkloadKey | None:
        """Return the key of a pod's workload; None for an unknown pod."""
        return self._groups.key(uid)

    def namespace(self, key: WorkloadKey) -> str:
        """Return the namespace of a workload's pods; "" for an unknown workload."""
        return self._groups.namespace(key)

    def mine(self, key: WorkloadKey) -> list[Pod]:
        """Return the pods of a workload that are on this side."""
        return [pod for _, pod in self._groups.members(key) if self.is_mine(pod)]

    def is_ours(self, key: WorkloadKey) -> bool:
        """Check whether any pod of a workload is on this side."""
        return any(self.is_mine(pod) for _, pod in self._groups.members(key))

    def is_mine(self, pod: Pod) -> bool:
        """Check whether a pod is on this side."""
        return lifecycle.actor(pod) is self._actor

    def is_resolved(self, pod: Pod) -> bool:
        """Check whether the pod's workload is known."""
        member = self._membership(pod)
        return member is not None and not member.held_as

    def see(self, pod: Pod) -> tuple[Pod, WorkloadKey, WorkloadKey | None]:
        """Index a pod.

        Return it with its first deletion, its workload's key, and that of the workload it left.
        """
        self._deletions.see(pod)
        pod = self._deletions.with_first(pod)
        member = self._membership(pod) or membership.alone(pod)
        return pod, member.key, self._groups.put(pod, member)

    def remove(self, pod: Pod) -> WorkloadKey | None:
        """Remove a pod that is gone; return the key of its workload."""
        self._deletions.forget(pod.uid)
        return self._groups.remove(pod.uid)

    def settle(self, pod: Pod, member: Membership) -> None:
        """Note which workload a pod belongs to, until it is forgotten."""
        self._memberships[pod.uid] = member
        self._groups.put(pod, member)

    def forget(self, uid: PodUid) -> None:
        """Forget the settled workload of a pod that is gone or on the other side."""
        self._memberships.pop(uid, None)

    def _membership(self, pod: Pod) -> Membership | None:
        if not pod.is_gated:
            return membership.placed(pod)
        if self._workloads is None:
            return membership.alone(pod)
        return self._memberships.get(pod.uid) or self._workloads.membership(pod)
