"""A side of the loop over pods that knows all about every pod, and a Slurm that lists what it is told to."""

from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType

from typing_extensions import override

from bridge.domain.gang.decide import OpenCase
from bridge.domain.lifecycle.decision import Actor, Deadlines, Facts, Fit
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Past
from bridge.domain.workloads.membership import Membership
from bridge.reconcile.nodes import KubeNodes
from bridge.reconcile.side import Side
from bridge.slurm.snapshot import Snapshot
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.model.objects import KubeObject
from slurmruntime.values.ids import KubeNode, PodUid, SlurmNode, WorkloadKey, alone_key
from tests.make import lives as build
from tests.virtual_time import VirtualClock


class OneNode(KubeNodes):
    """Every node of Slurm is the same one."""

    @override
    def behind(self, slurm_node: SlurmNode) -> KubeNode | None:
        return build.KUBE_NODE


class KnowsAll:
    """Resolves, admits and gathers without asking anybody."""

    def __init__(
        self, actor: Actor, membership: Callable[[Pod], Membership], *, fit: Fit | None = None
    ) -> None:
        """fit: what is found of every node."""
        self._actor = actor
        self._fit = fit
        self.forgotten: list[PodUid] = []
        self.gathered = 0
        """How often the facts about a pod were asked for: once for each decision."""
        self._membership = membership

    def side(self) -> Side:
        return Side(
            actor=self._actor,
            deadlines=Deadlines(),
            nodes=OneNode(Cache(NODES)),
            facts=self,
            workloads=self,
        )

    def membership(self, pod: Pod) -> Membership:
        return self._membership(pod)

    async def resolve(self, pod: Pod) -> Membership:
        return self._membership(pod)

    async def declared(self, member: Membership) -> KubeObject | None:
        return None

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        return True

    def past(self, pod: Pod) -> Past:
        return Past.HANDED_OVER

    def gather(self, case: OpenCase, *, key: WorkloadKey, now: datetime) -> Facts:
        self.gathered += 1
        return Facts(
            pod=case.pod,
            view=case.view,
            now=now,
            since=case.since,
            kube_node=build.KUBE_NODE,
            fit=self._fit,
        )

    def forget(self, key: WorkloadKey) -> None:
        pass

    def forget_pod(self, uid: PodUid) -> None:
        self.forgotten.append(uid)


class Lists:
    """Lists `jobs`, all of them the placeholders of one pod."""

    slurms_time = None
    listed_s = 0.0
    listed_jobs = 0

    def __init__(self, clock: VirtualClock, pod: PodUid, jobs: tuple[SlurmJob, ...] = ()) -> None:
        self.jobs = jobs
        self._clock = clock
        self._key = alone_key(pod)
        self._sequence = 0

    async def refresh(self, **_: object) -> Snapshot:
        self._sequence += 1
        return Snapshot(
            sequence=self._sequence,
            began_monotonic=self._clock.monotonic(),
            jobs=MappingProxyType({job.id: job for job in self.jobs}),
            by_key=MappingProxyType({self._key: self.jobs} if self.jobs else {}),
            is_repeated=False,
            is_whole=True,
            unreadable=MappingProxyType({}),
            unsure=frozenset(),
        )
