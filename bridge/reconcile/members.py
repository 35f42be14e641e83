"""Which of the pods that are seen make up which workload, and which of them are one side's to act on."""

from bridge.domain.ids import PodUid, WorkloadKey
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.model.pods import Pod
from bridge.domain.observation.deletions import Deletions
from bridge.domain.workloads import membership
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Groups
from bridge.reconcile.side import Side


class Members:
    """An index over the pods of one side; no I/O."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._groups = Groups()
        self._deletions = Deletions()
        self._memberships: dict[PodUid, Membership] = {}
        """Of gated pods, as far as they are known: what they follow from does not change after CREATE."""

    def of(self, uid: WorkloadKey) -> list[tuple[Membership, Pod]]:
        """Every pod of a workload, in no particular order."""
        return self._groups.members(uid)

    def key(self, uid: PodUid) -> WorkloadKey | None:
        """The key of a pod's workload; None for a pod that is not here."""
        return self._groups.key(uid)

    def mine(self, uid: WorkloadKey) -> list[Pod]:
        """The pods of a workload that are this side's."""
        return [pod for _, pod in self._groups.members(uid) if self.is_mine(pod)]

    def is_ours(self, uid: WorkloadKey) -> bool:
        """Whether any of a workload is this side's."""
        return any(self.is_mine(pod) for _, pod in self._groups.members(uid))

    def is_mine(self, pod: Pod) -> bool:
        """Whether a pod is this side's."""
        return lifecycle.actor(pod) is self._side.actor

    def is_resolved(self, pod: Pod) -> bool:
        """Whether it is known which workload a pod is of."""
        return self._membership(pod) is not None

    def see(self, pod: Pod) -> tuple[Pod, WorkloadKey, WorkloadKey | None]:
        """Take in a pod as it is now; returns it with its first deletion, its workload's key, and that of the one it left."""
        self._deletions.see(pod)
        pod = self._deletions.with_first(pod)
        member = self._membership(pod) or membership.alone(pod)
        return pod, member.key, self._groups.put(pod, member)

    def remove(self, pod: Pod) -> WorkloadKey | None:
        """Take in that a pod is gone; returns the key of its workload."""
        self._deletions.forget(pod.uid)
        return self._groups.remove(pod.uid)

    def settle(self, pod: Pod, member: Membership) -> None:
        """Note which workload a pod is of, until it is forgotten."""
        self._memberships[pod.uid] = member
        self._groups.put(pod, member)

    def forget(self, uid: PodUid) -> None:
        """The pod is gone or the other side's: what was settled is void."""
        self._memberships.pop(uid, None)

    def _membership(self, pod: Pod) -> Membership | None:
        if not pod.is_gated:
            return membership.placed(pod)
        return self._memberships.get(pod.uid) or self._side.membership(pod)
