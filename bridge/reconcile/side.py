"""What the extender and the controllers each provide to the loop over pods."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bridge.domain.gang.decide import OpenCase
from bridge.domain.lifecycle.decision import Actor, Deadlines, Facts
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Past
from bridge.domain.workloads.membership import Membership
from bridge.reconcile.nodes import KubeNodes
from slurmruntime.model.objects import KubeObject
from slurmruntime.values.ids import PodUid, WorkloadKey


class PodFacts(Protocol):
    """What a program knows of its pods, beyond their placeholders."""

    def past(self, pod: Pod) -> Past:
        """Return whether another process may have a write for this pod in flight."""

    def gather(self, case: OpenCase, *, key: WorkloadKey, now: datetime) -> Facts:
        """Gather everything the decision needs; key: the workload's."""

    def forget_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone or belongs to the other program."""


class WorkloadResolver(Protocol):
    """Finds out which workloads gated pods belong to."""

    def membership(self, pod: Pod) -> Membership | None:
        """Return the workload membership of a gated pod; None if that takes a request to the API server."""

    async def resolve(self, pod: Pod) -> Membership:
        """Resolve the workload membership of a gated pod."""

    async def declared(self, member: Membership) -> KubeObject | None:
        """Read the object that declares a member's group; None if there is none."""

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        """Check whether a pod may take a place in a placeholder that was submitted without it."""

    def forget(self, key: WorkloadKey) -> None:
        """Forget a workload that is gone or belongs to the other program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The parts in which the two programs that act on pods differ."""

    actor: Actor
    """The owner of these pods."""
    deadlines: Deadlines
    nodes: KubeNodes
    facts: PodFacts
    workloads: WorkloadResolver | None = None
    """For the program that places pods. None: the record on a pod is authoritative, and any pod
    with a slot in a placeholder may take it.
    """
