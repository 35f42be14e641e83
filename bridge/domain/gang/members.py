"""A gang's members one by one: their state, and which placeholders concern them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bridge.domain.gang import seating
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.decision import Deadlines, Decision, WhenFull
from bridge.domain.lifecycle.rules.answers import tell, wait
from bridge.domain.lifecycle.table import Row
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Concerns, View
from bridge.domain.workloads.membership import Membership
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, PodUid

SOON = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member, and the decision for it if it were alone."""

    pod: Pod
    row: Row
    job: SlurmJob | None
    """The placeholder that counts for it."""
    decision: Decision | None
    """None: the other program decides about it."""
    dwelt: timedelta = timedelta(0)
    """How long it has been in this cell of the table."""
    is_fresh: bool = True
    """Of the view that the decision was based on."""


Answers = Mapping[PodUid, Decision]
"""Decisions about members, by their uid."""


class Claims:
    """Selects the placeholders of a workload that concern each of its pods.

    All of them concern a single pod. A group may be created again under its name while the old one
    ends, so a placeholder concerns the pods that it names. New members join a placeholder that
    names any of those they wait with; or else one that runs, as long as a member placed by it
    lives.

    Every member is visited once, here; each question afterwards takes constant time.
    """

    def __init__(
        self, members: Sequence[tuple[Membership, Pod]], jobs: Sequence[SlurmJob] = ()
    ) -> None:
        self.is_gang = any(member.is_gang for member, _ in members[:1])
        self.members = tuple(members if self.is_gang else members[:1])
        self.pods = tuple(pod for _, pod in self.members)
        self.jobs = tuple(jobs)
        self.names = Names()
        self._live = [job for job in jobs if job.phase is not JobPhase.ENDED]
        self._joined = frozenset(self._joinable()) if self.is_gang else frozenset[JobId]()

    def of(self, pod: Pod) -> Concerns:
        """Return a filter for the placeholders that concern this pod."""
        if not self.is_gang:
            return lambda _: True
        if seating.is_waiting(pod):
            return lambda job: self.names.has(job, pod) or job.id in self._joined
        return lambda job: self._is_of(job, pod)

    def joining(self) -> Iterator[tuple[Pod, SlurmJob]]:
        """List waiting pods that claim a slot in a placeholder that was submitted without them."""
        for pod in filter(seating.is_waiting, self.pods if self.is_gang else ()):
            its = list(filter(self.of(pod), self._live))
            if its and not any(self.names.has(job, pod) for job in its):
                yield pod, its[0]

    def others(self, pod: Pod) -> Member:
        """Describe a member that the other program decides about."""
        job = next((job for job in self.jobs if self._is_of(job, pod)), None)
        row = lifecycle.row_of(pod)
        return Member(pod=pod, row=row, job=job, decision=None)

    def _is_of(self, job: SlurmJob, pod: Pod) -> bool:
        is_placed = not pod.is_gated and job.is_named(pod.job_id, pod.sluid)
        return is_placed or self.names.has(job, pod)

    def _joinable(self) -> Iterable[JobId]:
        forming = {pod.uid for pod in self.pods if seating.is_waiting(pod)}
        if not forming:
            return ()
        return [job.id for job in self._live if not forming.isdisjoint(job.identity.pods)] or [
            job.id
            for job in self._live
            if job.phase is JobPhase.RUNNING and any(runs_in(job, pod) for pod in self.pods)
        ]


class Names:
    """Checks whether a placeholder's identity names a pod, which may be one of thousands."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[SlurmJob, frozenset[PodUid]]] = {}

    def has(self, job: SlurmJob, pod: Pod) -> bool:
        """Look the pod up; only the first call for a placeholder reads its whole list."""
        # Keyed by object, kept alive by the entry: two readings may show one job with other pods.
        known = self._known.get(id(job))
        if known is None:
            known = self._known[id(job)] = (job, frozenset(job.identity.pods))
        return pod.uid in known[1]


def why_unseated(job: SlurmJob) -> str:
    """Explain why a running placeholder has no slot for some of its gang."""
    if not seating.slots(job):
        return f"Slurm job {job.id} has no room for {job.tasks} tasks on {', '.join(job.nodes)}"
    return "no slot of the gang's placeholder is free yet"


def surplus(
    pod: Pod, job: SlurmJob, view: View, policy: Deadlines, *, dwelt: timedelta
) -> Decision:
    """Hold back a member for which the gang has no free slot; after a moment, say so on the pod."""
    text = (
        f"Slurm job {job.id} of its gang has {job.tasks} slots, and none for this pod: "
        f"it waits until one becomes free ({names.WHEN_FULL_ANNOTATION}: {WhenFull.WAIT})"
    )
    if view.fresh and dwelt >= policy.tell_after:
        return tell(pod, "GangFull", text)
    return wait(text, retry=SOON)


def runs_in(job: SlurmJob, pod: Pod) -> bool:
    """Check whether this placeholder placed the pod, and the pod is alive."""
    return (
        not pod.is_gated
        and job.is_named(pod.job_id, pod.sluid)
        and lifecycle.row_of(pod) in (Row.PLACED, Row.BOUND)
    )


def has(decision: Decision, kind: type) -> bool:
    """Check whether a decision contains an action of this type."""
    return any(isinstance(action, kind) for action in decision.actions)
