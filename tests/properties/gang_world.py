"""One gang and Slurm: requests get lost, replies too, the leader dies between any two writes, members come and go.

Views are always fresh here: what lags and is held back is the single pod's world (`stage`), and holds for each member.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace

from bridge.domain.lifecycle.actions import Action, Assign, Cancel, Enlist, Release, Resize, Submit
from bridge.domain.model import identities
from bridge.domain.model.allocation import TaskShare
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads.kinds import label_group
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, PodUid, Sluid, SlurmNode
from tests.make import lives
from tests.make import members as build
from tests.make.gangs import UID, decided
from tests.properties.storm import Choose

STEPS = 30
SETTLED_AFTER = 12
ROOM = 2
"""Tasks that each node takes."""


class World:
    """One gang, and Slurm."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.numbers = itertools.count(1)
        self.size = 2
        self.pods: list[Pod] = []
        self.jobs: list[SlurmJob] = []
        self.story: list[str] = []

    def live_through(self, steps: int) -> None:
        """Let so many things happen, then leave the gang alone until it has its places."""
        for _ in range(steps):
            step = self.choose(self.steps())
            self.story.append(step.__name__)
            step()
        self.settle()

    # -- what happens -------------------------------------------------------------------------------------------------

    def steps(self) -> list[Callable[[], None]]:
        return [
            self.leader_acts,
            self.leader_acts,
            self.leader_acts,
            self.leader_is_struck,
            self.leader_is_struck,
            self.controller_makes_members,
            self.controller_makes_members,
            self.slurm_starts_what_waits,
            self.slurm_starts_what_waits,
            self.a_member_goes,
            self.a_running_member_goes,
            self.somebody_resizes_it,
        ]

    def leader_acts(self) -> None:
        for name, actions in self.decided().items():
            for action in actions:
                self.does(name, action)

    def leader_is_struck(self) -> None:
        """After so many writes the next is lost, or only its reply is."""
        left, is_done = self.choose((0, 1, 2, 3)), self.choose((True, False))
        for name, actions in self.decided().items():
            for action in actions:
                if left == 0 and not is_done:
                    return
                self.does(name, action)
                if left == 0:
                    return
                left -= 1

    def controller_makes_members(self) -> None:
        while len(self.pods) < self.size:
            self.pods.append(build.labelled(f"m-{next(self.numbers)}", "ring", str(self.size)))

    def slurm_starts_what_waits(self) -> None:
        for job in self.live():
            if job.phase is JobPhase.WAITING:
                nodes = tuple(SlurmNode(f"n{number}") for number in range(-(-job.tasks // ROOM)))
                shares = tuple(TaskShare(node=node, tasks=ROOM) for node in nodes)
                self.put(replace(job, phase=JobPhase.RUNNING, nodes=nodes, shares=shares))

    def a_member_goes(self) -> None:
        """One that waits: it is released when its part is settled."""
        if waiting := [pod for pod in self.pods if pod.is_gated and not pod.is_deleting]:
            pod = self.choose(waiting)
            self.pods[self.pods.index(pod)] = lives.deleting(pod)

    def a_running_member_goes(self) -> None:
        """The controllers settle its part; what is left of the placeholder is theirs to end."""
        if placed := [pod for pod in self.pods if not pod.is_gated]:
            self.pods.remove(self.choose(placed))
            if not any(not pod.is_gated for pod in self.pods):
                for job in self.live():
                    if job.phase is JobPhase.RUNNING:
                        self.put(replace(job, phase=JobPhase.ENDED, end=JobEnd.COMPLETED))

    def somebody_resizes_it(self) -> None:
        """While all of it waits."""
        if any(job.phase is JobPhase.RUNNING for job in self.live()):
            return
        self.size = self.choose((2, 3, 4))
        while len(self.pods) > self.size:
            self.pods.pop()
        size = {names.POD_GROUP_SIZE_ANNOTATION: str(self.size)}
        self.pods = [replace(pod, annotations={**pod.annotations, **size}) for pod in self.pods]

    # -- what requests do, and what they must not -----------------------------------------------------------------------

    def decided(self) -> dict[str, tuple[Action, ...]]:
        return decided(self.pods, *self.jobs) if self.pods else {}

    def does(self, name: str, action: Action) -> None:
        self.story.append(f"{name}: {type(action).__name__}")
        match action:
            case Submit(gang=gang):
                assert gang is not None
                members = {pod.uid for pod in gang.members}
                claimed = [job for job in self.live() if members & set(job.identity.pods)]
                assert not claimed, "a second placeholder was submitted"
                self.submit(tuple(pod.uid for pod in gang.members), gang.size)
            case Resize(job_id=job_id, gang=gang):
                job = self.job(job_id)
                assert job.phase is JobPhase.WAITING, "what runs was resized"
                self.put(replace(job, tasks=gang.size))
            case Enlist(job_id=job_id, pods=pods, alive=alive):
                job = self.job(job_id)
                identity = identities.enlist(job.identity, pods=pods, alive=alive)
                self.put(replace(job, identity=identity))
            case Cancel(job_id=job_id, cause=cause):
                job = self.job(job_id)
                assert not self.placed_in(job), "the ground was taken from under a member"
                identity = replace(job.identity, cause=cause or "")
                ended = replace(job, phase=JobPhase.ENDED, end=JobEnd.CANCELLED, identity=identity)
                self.put(ended)
            case Assign():
                self.assign(name, action)
            case Release():
                self.pods = [pod for pod in self.pods if pod.name != name]
            case _:
                pass

    def assign(self, name: str, action: Assign) -> None:
        job, place = self.job(action.job_id), action.place
        pod = next(pod for pod in self.pods if pod.name == name)
        assert place is not None
        assert job.phase is JobPhase.RUNNING
        assert pod.uid in job.identity.pods, "it was placed before the placeholder named it"
        assert place.rank not in {other.rank for other in self.placed_in(job)}, "a slot was taken"
        assert place.rank < job.tasks
        on_node = [
            other
            for other in self.placed_in(job)
            if (other.rank or 0) // ROOM == place.rank // ROOM
        ]
        assert len(on_node) < ROOM, "more on a node than Slurm gave"
        placed = build.placed(pod, UID, place.rank, job_id=job.id)
        self.pods[self.pods.index(pod)] = placed

    def submit(self, pods: tuple[PodUid, ...], tasks: int) -> None:
        number = next(self.numbers)
        made = lives.job(JobPhase.WAITING, number=number)
        identity = replace(made.identity, kind=label_group.KIND, name="ring", key=UID, pods=pods)
        sluid = Sluid(f"sluid-{number}")
        self.jobs.append(replace(made, sluid=sluid, tasks=tasks, identity=identity))

    def job(self, job_id: JobId) -> SlurmJob:
        return next(job for job in self.jobs if job.id == job_id)

    def put(self, job: SlurmJob) -> None:
        self.jobs = [job if each.id == job.id else each for each in self.jobs]

    def live(self) -> list[SlurmJob]:
        return [job for job in self.jobs if job.phase is not JobPhase.ENDED]

    def placed_in(self, job: SlurmJob) -> list[Pod]:
        return [pod for pod in self.pods if not pod.is_gated and pod.job_id == job.id]

    # -- in the end -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Left alone, all members get their places in one placeholder."""
        for _ in range(SETTLED_AFTER):
            self.jobs = [
                job for job in self.jobs if self.is_somebodys(job)
            ]  # orphans are collected
            self.controller_makes_members()
            self.leader_acts()
            self.slurm_starts_what_waits()
        gated = [pod.name for pod in self.pods if pod.is_gated]
        assert not gated, f"{gated} never got a node"
        (job,) = [job for job in self.live() if self.is_somebodys(job)]
        assert len(self.placed_in(job)) == self.size

    def is_somebodys(self, job: SlurmJob) -> bool:
        """Ended ones are forgotten too: their back-off is the single pod's affair."""
        is_live = job.phase is not JobPhase.ENDED
        return is_live and any(pod.uid in job.identity.pods for pod in self.pods)
