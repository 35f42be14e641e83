"""Both systems and our leaders on one stage: how actions become requests, and what no request may ever do."""

import functools
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import assert_never

from bridge.domain.lifecycle import orphans
from bridge.domain.lifecycle.actions import (
    Action,
    Adopt,
    Assign,
    Cancel,
    Cause,
    Complete,
    EndPod,
    Enlist,
    Evict,
    Excuse,
    Outcome,
    OwnCause,
    Record,
    Release,
    Resize,
    Restore,
    SetTimeLimit,
    Shorten,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Actor, Facts
from bridge.domain.lifecycle.outcome import NO_EXIT_CODE
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.domain.model.pods import Phase, Pod
from slurmruntime.values.ids import ClusterId, JobId, Sluid, alone_key
from tests.properties.agent import QUIET_S, Agent, Fault, Reading, Write
from tests.properties.cluster_model import UID, Cluster, new_pod
from tests.properties.slurm_model import OTHERS, Job, Slurm

BEGAN = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
MEANT = (JobEnd.CANCELLED, JobEnd.TIMEOUT)
"""Ends that somebody meant for the pod."""
NEVER_STARTED = Outcome(exit_code=NO_EXIT_CODE)
ORPHAN_GRACE = timedelta(seconds=10)
Strike = tuple[int, Fault]
"""Which of an attempt's writes is struck, and how."""


class Stage:
    """The truth; leaders see it late and in parts."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.numbers = itertools.count(1)
        self.slurm = Slurm()
        self.cluster = Cluster(new_pod(BEGAN))
        self.leaders = {actor: self.new_leader(actor, is_first=True) for actor in Actor}
        self.deposed: list[Agent] = []
        self.late: list[tuple[float, Callable[[], None]]] = []
        self.late_submits: list[Agent] = []
        """By whom, while they are under way."""
        self.judgement = orphans.Judgement()
        self.writes = 0
        self.excused: set[Sluid] = set()
        """Jobs of deposed leaders: a lease is no fence."""
        self.was_placed_by_deposed = False
        self.assigned: tuple[Agent, datetime] | None = None
        """Who un-gated it, and when it decided to."""
        self.was_meant_to_end = False
        """Somebody ended a placeholder that waited, and meant it."""
        self.evicted_for: Cause | None = None
        """Why we deleted the pod before anybody else did."""
        self.overrun: set[Sluid] = set()
        """Whose nodes Slurm took from under running containers, as their time was over."""

    @property
    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.clock)

    def passes(self, seconds: float) -> None:
        """Time passes, and what is under way arrives when it is due."""
        end = self.clock + seconds
        while due := [item for item in self.late if item[0] <= end]:
            first = min(due, key=lambda item: item[0])
            self.late.remove(first)
            self.clock = max(self.clock, first[0])
            self.slurm_ends_what_is_overdue()
            first[1]()
        self.clock = end
        self.slurm_ends_what_is_overdue()

    def slurm_ends_what_is_overdue(self) -> None:
        for job in self.slurm.overrun(self.now):
            self.was_meant_to_end = True
            if self.cluster.is_running and job.key == self.cluster.placed_by:
                self.overrun.add(job.key)
            self.slurm.end(job, JobEnd.TIMEOUT, OTHERS)

    # --- our leaders --------------------------------------------------------------------

    def new_leader(self, actor: Actor, *, is_first: bool = False) -> Agent:
        return Agent(f"{actor.value} {next(self.numbers)}", actor, is_first)

    def depose(self, actor: Actor) -> None:
        """It does not know, and goes on."""
        self.leaders[actor].is_deposed = True
        self.deposed.append(self.leaders[actor])
        self.leaders[actor] = self.new_leader(actor)

    def looks(self, agent: Agent) -> None:
        """Read Slurm at once, or fail to."""
        self.passes(0.01)
        if self.slurm.reachable:
            agent.reads(self.reading())
        else:
            agent.book.failed()

    def reading(self) -> Reading:
        return Reading(self.clock, {alone_key(UID): self.slurm.snapshot()})

    def acts(self, agent: Agent, strike: Strike | None = None) -> None:
        """Decide on what the agent has seen, and do it; a struck write ends the attempt."""
        decided = agent.decides(self.cluster, self.now)
        if decided is None:
            return
        facts, decision = decided
        number = 0
        for action in decision.actions:
            for write in self.requests(agent, facts, action):
                struck = strike[1] if strike is not None and strike[0] == number else None
                number += 1
                if not self.is_done(agent, write, struck):
                    return

    def is_done(self, agent: Agent, write: Write, fault: Fault | None) -> bool:
        """Make one request; False if it failed, or the agent did.

        The API server is done with a dead leader's write before its lease has run out; a slurmctld that hangs may not.
        """
        if fault is Fault.LATE_DEATH and not write.to_slurm:
            fault = Fault.DEATH
        self.passes(0.01)
        self.writes += 1
        arrives = not write.to_slurm or self.slurm.reachable
        if fault in (Fault.LATE, Fault.LATE_DEATH):
            self.send_late(agent, write)
        elif arrives and fault is not Fault.REQUEST_LOST:
            write.do()
        self.passes(0.01)
        failed = fault is not None or not arrives
        if write.to_slurm:
            agent.book.wrote(
                alone_key(UID), at=self.clock, may_still_happen=write.is_submit and failed
            )
        elif agent.pod is not None:
            agent.book.patched(UID, version=agent.pod.resource_version, at=self.clock)
        if fault in (Fault.DEATH, Fault.LATE_DEATH) and not agent.is_deposed:
            self.leaders[agent.actor] = self.new_leader(agent.actor)
        return not failed

    def send_late(self, agent: Agent, write: Write) -> None:
        """It is given up, and done before the quiet period is over."""

        def arrive() -> None:
            if write.is_submit:
                self.late_submits.remove(agent)
            write.do()

        if write.is_submit:
            self.late_submits.append(agent)
        self.late.append((self.clock + 0.9 * QUIET_S, arrive))

    def requests(self, agent: Agent, facts: Facts, action: Action) -> Iterator[Write]:
        """What an actuator makes of an action."""
        match action:
            case Submit():
                do = functools.partial(self.submit, agent, facts, action)
                yield Write(do, to_slurm=True, is_submit=True)
            case Complete(job_id=job_id, sluid=sluid, outcome=outcome):
                yield Write(lambda: self.end(agent, job_id, sluid, outcome), to_slurm=True)
            case SetTimeLimit():
                yield Write(lambda: self.set_time_limit(action), to_slurm=True)
            case Cancel():
                yield from self.cancel_requests(agent, action)
            case Excuse():
                raise AssertionError("no machine crashes in this world")
            case Shorten():
                raise AssertionError("nobody has such a long grace period in this world")
            case Tell() | Assign() | Evict() | EndPod() | Release() | Wait():
                yield from self.pod_requests(agent, facts, action)
            case Restore() | Adopt():
                raise AssertionError("there is no evidence in this world, so nothing is restored")
            case Enlist() | Record() | Resize():
                raise AssertionError("a single pod has no gang")
            case _:
                assert_never(action)

    def cancel_requests(self, agent: Agent, action: Cancel) -> Iterator[Write]:
        job_id, sluid, cause = action.job_id, action.sluid, action.cause
        if cause is not None:
            if self.cluster.when(lambda pod: not pod.is_gated and pod.sluid == sluid):
                return
            yield Write(lambda: self.record(job_id, sluid, cause), to_slurm=True)
        yield Write(lambda: self.end(agent, job_id, sluid, None), to_slurm=True)

    def pod_requests(
        self,
        agent: Agent,
        facts: Facts,
        action: Tell | Assign | Evict | EndPod | Release | Wait,
    ) -> Iterator[Write]:
        match action:
            case Tell():
                yield Write(lambda: self.cluster.tell(action))
            case Assign():
                yield Write(lambda: self.assign(agent, facts, action))
            case Evict():
                yield Write(lambda: self.evict(facts.pod, action))
            case EndPod():
                yield Write(self.end_pod)
            case Release():
                yield Write(lambda: self.release(agent))
            case Wait():
                return
            case _:
                assert_never(action)

    # --- what requests do, and what they must not ------------------------------------------

    def submit(self, agent: Agent, facts: Facts, action: Submit) -> None:
        if not agent.is_deposed:
            ends = [job for job in facts.view.ended if job.identity.cause != OwnCause.SPARE]
            if ends:
                last = max(ends, key=lambda job: (job.submitted_at or self.now, job.id))
                is_meant = last.end in MEANT and not last.identity.cause
                assert not is_meant, "submitted again what somebody has cancelled"
            assert not self.known_live(), "a second placeholder was submitted"
            under_way = [other for other in self.late_submits if not other.is_deposed]
            assert not under_way, "a second submit was made while the first was under way"
        job = self.slurm.submit(UID, agent.name, self.now, avoid=action.avoid)
        if agent.is_deposed:
            self.excused.add(job.key)

    def known_live(self) -> set[Sluid]:
        """Live placeholders that a leader can know of."""
        live = {job.key for job in self.slurm.ours(live=True)}
        return live - self.excused - self.slurm.set_back

    def record(self, job_id: JobId, sluid: Sluid | None, cause: str) -> None:
        if job := self.slurm.find(job_id, sluid):
            job.record(cause)

    def set_time_limit(self, action: SetTimeLimit) -> None:
        """Only if Slurm still shows what was expected."""
        job = self.slurm.find(action.job_id, action.sluid)
        if job is not None and job.is_live and job.seen.time_limit_min == action.expected_min:
            job.set_time_limit(action.minutes, true_min=action.true_min)

    def end(
        self, agent: Agent, job_id: JobId, sluid: Sluid | None, outcome: Outcome | None
    ) -> None:
        """Cancel it (no outcome), or complete it."""
        job = self.slurm.find(job_id, sluid)
        if job is None:
            return
        if job.key == self.cluster.placed_by and job.is_live and not agent.is_deposed:
            self.check_outcome(agent, outcome, job)
        by = f"deposed {agent.name}" if agent.is_deposed else agent.name
        end = JobEnd.CANCELLED if outcome is None else JobEnd.COMPLETED
        self.slurm.end(job, end, by)

    def check_outcome(self, agent: Agent, outcome: Outcome | None, job: Job) -> None:
        """Accounting tells the truth."""
        cluster = self.cluster
        was_set_back = job.key in self.slurm.set_back
        if outcome is not None and outcome.timed_out:
            assert self.evicted_for is Cause.TIME_LIMIT, (
                "timed out though nobody evicted it for that"
            )
            ends_at = job.seen.ends_at
            assert ends_at is not None
            is_true = (job.seen.time_limit_min, ends_at) in job.limits
            assert is_true, "timed out with a limit that is not its own"
            assert ends_at < self.now, "what it calls a time-out Slurm takes for success"
        elif outcome == NEVER_STARTED and self.evicted_for is Cause.NOT_STARTED:
            assert not cluster.ended_by_itself, "a pod that ended is said never to have started"
        elif outcome is None and self.evicted_for is Cause.TIME_LIMIT and not was_set_back:
            is_lost = cluster.pod is None or cluster.node_is_gone or job.was_moved
            assert is_lost, "a pod evicted at its time limit was cancelled"
        elif outcome is not None:
            assert cluster.ended_by_itself, "a pod that was deleted while it ran was completed"
            assert Outcome(exit_code=cluster.exit_code or 0) == outcome
        elif agent.pod is not None and agent.pod.is_terminal and not cluster.node_is_gone:
            assert was_set_back or not cluster.ended_by_itself, "a pod that ended was cancelled"

    def assign(self, agent: Agent, facts: Facts, action: Assign) -> None:
        if self.cluster.when(lambda pod: pod.is_gated):
            job = next(job for job in facts.view.live if job.id == action.job_id)
            assert not job.identity.cause, "it hands out what is being given back"
            truth = self.slurm.jobs.get(job.sluid) if job.sluid is not None else None
            by = truth.ended_by if truth is not None else None
            is_dying = self.cluster.when(lambda pod: pod.is_deleting)
            assert is_dying or by != agent.name, "it hands out what it has given back"
            is_enough = truth is None or not truth.is_shrunk
            assert is_enough, "it hands out more than Slurm has granted"
            self.cluster.assign(action.job_id, action.kube_node, job.sluid)
            self.was_placed_by_deposed = agent.is_deposed
            self.assigned = agent, facts.now
        elif self.assigned is not None:
            one, at = self.assigned
            is_long_ago = facts.now > at + timedelta(seconds=QUIET_S)
            assert one is not agent or is_long_ago, "it forgot what it has just done"

    def evict(self, decided_on: Pod, action: Evict) -> None:
        """Nothing dies on doubt."""
        pod = self.cluster.pod
        if pod is None or (action.if_unchanged and pod != decided_on):
            return
        assert not pod.is_gated, "a gated pod was deleted"
        assert self.cluster.placed_by is not None
        cannot_be_bound = action.cause is Cause.NOT_BOUND and self.cluster.is_unbindable
        never_ran = not pod.is_bound and (cannot_be_bound or action.cause is Cause.LOST)
        # A kubelet that has said nothing for the whole start deadline: nothing more can be known.
        never_ran |= pod.phase is Phase.PENDING and action.cause is Cause.NOT_STARTED
        # A deposed leader's submit can get the very id that a crash has freed: the sluid on the pod tells them apart.
        is_over = self.cluster.placed_by in self.slurm.ever_ended | self.slurm.set_back
        ran_out = action.cause is Cause.TIME_LIMIT and self.has_run_out()
        assert never_ran or is_over or ran_out, "evicted on doubt"
        if not pod.is_deleting:
            self.evicted_for = action.cause
        self.cluster.say_why(action.cause)
        self.cluster.delete(self.now)

    def has_run_out(self) -> bool:
        """By any limit that was ever its own: a leader may not have seen the last one, or a crash, yet."""
        placed_by = self.cluster.placed_by
        assert placed_by is not None
        job = self.slurm.jobs.get(placed_by)
        limits = [
            *(job.limits if job is not None else ()),
            *self.slurm.limits_before_a_crash.get(placed_by, ()),
        ]
        return any(ends_at <= self.now for _, ends_at in limits)

    def end_pod(self) -> None:
        if self.cluster.when(lambda pod: pod.is_gated and not pod.is_deleting):
            assert self.was_meant_to_end, "a waiting pod was ended though nobody wanted that"
            self.cluster.fail_at_gate()

    def release(self, agent: Agent) -> None:
        assert not self.cluster.is_running, "released while its container runs"
        if not agent.is_deposed:
            assert agent not in self.late_submits, "released while its own submit is under way"
            late = {job.key for job in self.slurm.ours() if job.submitted_by != agent.name}
            unknowable = late if agent.actor is Actor.CONTROLLERS else set()
            assert not self.known_live() - unknowable, "released while its placeholder lives"
        self.cluster.release()

    def collect_orphans(self, *, is_synced: bool) -> None:
        """List Slurm first, then ask the API server; what a cache does not know may live."""
        agent = self.leaders[Actor.CONTROLLERS]
        known = {agent.pod.uid} if is_synced and agent.pod is not None else set()
        jobs = self.slurm.snapshot()
        gone = frozenset() if self.cluster.pod is not None else frozenset({UID})
        self.judgement = orphans.judge(
            orphans.candidates(jobs, cluster=ClusterId("c"), known=known),
            gone=gone,
            seen=frozenset({UID}),
            suspects=self.judgement.suspects,
            now=self.now,
            grace=ORPHAN_GRACE,
        )
        for cancel in self.judgement.orphans:
            assert self.cluster.pod is None, "a live pod's placeholder is no orphan"
            self.end(agent, cancel.job_id, cancel.sluid, None)

    # --- what must hold at every moment ------------------------------------------------------

    def check(self) -> None:
        """Containers run on nodes their placeholder holds, unless others took them; strangers are left alone."""
        assert all(job.ended_by is None for job in self.slurm.strangers()), "a stranger's job ended"
        if not self.cluster.is_running or self.was_placed_by_deposed:
            return
        assert self.cluster.placed_by is not None
        job = self.slurm.jobs.get(self.cluster.placed_by)
        if job is not None and job.seen.phase is JobPhase.ENDED:
            by = job.ended_by or OTHERS
            assert by == OTHERS or by.startswith("deposed"), f"{by} gave back what is in use"
