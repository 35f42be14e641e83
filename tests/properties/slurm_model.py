"""A slurmctld as the lifecycle has to live with it: it crashes back to what it saved and uses job ids again."""

import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bridge.domain.model.allocation import TaskGrant
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from slurmruntime.values.ids import ClusterId, JobId, PodUid, Sluid, SlurmNode, alone_key

NODES = (SlurmNode("s1"), SlurmNode("s2"))
OTHERS = ""
"""Who ended a job, if it was none of us."""


@dataclass(slots=True)
class Job:
    """A job, and what only the truth knows of it."""

    seen: SlurmJob
    """As Slurm shows it."""
    submitted_by: str
    avoid: tuple[SlurmNode, ...] = ()
    is_shrunk: bool = False
    """Somebody made it smaller than its pod while it waited."""
    ended_by: str | None = None
    limits: list[tuple[int, datetime]] = field(default_factory=list)
    """Every limit that was ever its own, minutes, and when it would have ended by it."""

    @property
    def is_live(self) -> bool:
        return self.seen.phase is not JobPhase.ENDED

    @property
    def was_moved(self) -> bool:
        """Somebody changed, or lifted, its limit."""
        return len(self.limits) > 1 or self.seen.ends_at is None

    @property
    def key(self) -> Sluid:
        assert self.seen.sluid is not None
        return self.seen.sluid

    def change(self, **changes: Any) -> None:
        self.seen = replace(self.seen, **changes)

    def set_time_limit(self, minutes: int, *, true_min: int | None = None) -> None:
        """Slurm moves the end with the limit; what we record comes with it, an administrator records nothing."""
        before, ends_at = self.seen.time_limit_min, self.seen.ends_at
        assert before is not None
        assert ends_at is not None
        identity = self.seen.identity
        if true_min is not None:
            ours = (None, None) if minutes == true_min else (true_min, minutes)
            identity = replace(identity, limit_min=ours[0], extended_min=ours[1])
        moved = ends_at + timedelta(minutes=minutes - before)
        if true_min is None:
            self.limits.append((minutes, moved))
        self.change(time_limit_min=minutes, ends_at=moved, identity=identity)

    def record(self, cause: str) -> None:
        self.change(identity=replace(self.seen.identity, cause=cause))


@dataclass(slots=True)
class Slurm:
    """Jobs of one pod and of strangers."""

    jobs: dict[Sluid, Job] = field(default_factory=dict)
    next_id: int = 1
    sluids: int = 0
    """Never goes back: a sluid is never used again."""
    reachable: bool = True
    limit_min: int | None = None
    """Of every job that starts."""
    saved: tuple[dict[Sluid, Job], int] = field(default_factory=lambda: ({}, 1))
    ever_ended: set[Sluid] = field(default_factory=set)
    set_back: set[Sluid] = field(default_factory=set)
    """Came back from a crash in an earlier state than they had reached."""
    limits_before_a_crash: dict[Sluid, list[tuple[int, datetime]]] = field(default_factory=dict)
    """What slurmctld has forgotten, and a leader that has not looked again has not."""

    def ours(self, *, live: bool = False) -> list[Job]:
        return [j for j in self.jobs.values() if j.submitted_by and (j.is_live or not live)]

    def strangers(self) -> list[Job]:
        return [job for job in self.jobs.values() if not job.submitted_by]

    def snapshot(self) -> tuple[SlurmJob, ...]:
        """What discovery tells of our jobs: strangers are not among them."""
        return tuple(job.seen for job in self.ours())

    def submit(
        self, uid: PodUid, by: str, now: datetime, *, avoid: tuple[SlurmNode, ...] = ()
    ) -> Job:
        self.sluids += 1
        sluid = Sluid(f"sluid-{self.sluids}")
        identity = Identity(
            cluster=ClusterId("c"),
            kind="Pod",
            namespace="ns",
            name="p",
            key=alone_key(uid),
            pods=(uid,),
        )
        seen = SlurmJob(
            id=JobId(self.next_id),
            sluid=sluid,
            phase=JobPhase.WAITING,
            reason="Priority",
            submitted_at=now,
            identity=identity,
        )
        self.jobs[sluid] = Job(seen, by, avoid)
        self.next_id += 1
        return self.jobs[sluid]

    def find(self, job_id: JobId, sluid: Sluid | None) -> Job | None:
        """The job that now has this id; with a sluid only if it is that very one."""
        for job in reversed(self.jobs.values()):
            if job.seen.id == job_id and (sluid is None or sluid == job.seen.sluid):
                return job
        return None

    def start(self, job: Job, node: SlurmNode, now: datetime) -> None:
        given = TaskGrant(cpus=0 if job.is_shrunk else 1, memory_mib=1)
        job.change(
            phase=JobPhase.RUNNING, reason="", nodes=(node,), started_at=now, task_grant=given
        )
        if self.limit_min is not None:
            ends_at = now + timedelta(minutes=self.limit_min)
            job.change(time_limit_min=self.limit_min, ends_at=ends_at)
            job.limits.append((self.limit_min, ends_at))

    def overrun(self, now: datetime) -> list[Job]:
        """Those that Slurm ends now, as their time is over."""
        runs = [job for job in self.jobs.values() if job.seen.phase is JobPhase.RUNNING]
        return [job for job in runs if job.seen.ends_at is not None and job.seen.ends_at <= now]

    def end(self, job: Job, end: JobEnd, by: str) -> None:
        if job.is_live:
            job.change(phase=JobPhase.ENDED, end=end)
            job.ended_by = by
            self.ever_ended.add(job.key)

    def come_or_go(self) -> None:
        self.reachable = not self.reachable

    def purge(self) -> None:
        self.jobs = {sluid: job for sluid, job in self.jobs.items() if job.is_live}

    def save(self) -> None:
        self.saved = copy.deepcopy(self.jobs), self.next_id

    def crash(self) -> None:
        """The last moments are forgotten: submits, starts, ends; and ids are given out again."""
        before = self.jobs
        self.limits_before_a_crash |= {sluid: job.limits for sluid, job in before.items()}
        jobs, self.next_id = self.saved
        self.jobs = copy.deepcopy(jobs)
        for sluid, job in self.jobs.items():
            if sluid not in before or before[sluid].seen.phase is not job.seen.phase:
                self.set_back.add(sluid)
