"""A NodeSet's workers, their jobs, and a leader that may die or lose a reply at every write: in memory, in its own time."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from random import Random

from slurmoperator.workers import choosing, table, updating
from slurmoperator.workers.actions import (
    CreateWorker,
    DeleteWorker,
    DrainWorker,
    ProtectWorker,
    ReleaseWorker,
    UndrainWorker,
    WorkerAction,
)
from slurmoperator.workers.choosing import REPLACED, SCALED_IN, RemovalCandidate
from slurmoperator.workers.readings import WorkerReading, WorkerReadings
from slurmoperator.workers.situation import (
    REASON_PREFIX,
    PodStage,
    WorkerFacts,
    WorkerPod,
)
from slurmoperator.workers.updating import UpdateCandidate
from tests.slurmoperator.workers.slurm_node import Node

LOST_REPLY_S = 10.0
CORDON = "cordoned in Kubernetes"
MOST = 4
MOST_AWAY = 2


class Died(Exception):
    """The leader is no more."""


class World:
    """One history."""

    has_updates = False
    """Templates change."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now_s = 100.0
        self.numbers = itertools.count(1)
        self.wanted = rng.randrange(MOST + 1)
        self.pods: dict[int, WorkerPod] = {}
        self.cached: dict[int, WorkerPod] = {}
        self.slurm: dict[int, Node] = {}
        self.before: dict[int, frozenset[int]] = {}
        """The jobs at the reading before: Slurm's lists may be that old."""
        self.cordoned: set[int] = set()
        self.foreign: set[int] = set()
        """Nodes that somebody else has drained."""
        self.lifted: set[int] = set()
        """Nodes of which somebody has lifted a drain just now: a job may start before anybody can know."""
        self.lifted_at_s: dict[int, float] = {}
        self.last_began_s = self.proof_from_s = 0.0
        """When the last reading began, and the one before: two prove that a node has no jobs."""
        self.late: list[tuple[float, int, str]] = []
        """Requests whose reply was lost, and that still take effect: when, where, which reason."""
        self.readings = WorkerReadings(lost_reply_s=LOST_REPLY_S)
        self.under_way: WorkerReading | None = None
        self.is_calm = False
        self.template = 1
        self.made_from: dict[str, int] = {}
        """Pods' templates, by uid."""
        self.broken: set[int] = set()
        """Templates whose workers never become ready."""
        self.history: list[str] = []

    # -- what happens -----------------------------------------------------------------------------

    def step(self) -> None:
        """Something happens."""
        steps: dict[Callable[[], None], float] = {
            self.look: 10,
            self.read: 10,
            self.hear: 8,
            self.progress: 8,
            self.start_job: 8,
            self.end_job: 5,
            self.scale: 4,
            self.cordon: 3,
            self.drain_by_somebody: 1,
            self.evict: 4,
            self.crash: 0.5,
            self.fail_to_read: 1,
            self.die: 1,
            self.wait_long: 1,
        }
        if self.has_updates:
            steps[self.change_template] = 2
        (chosen,) = self.rng.choices(list(steps), list(steps.values()))
        self.pass_time(self.rng.random())
        self.history.append(chosen.__name__)
        chosen()

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        for each in [each for each in self.late if each[0] <= self.now_s]:
            self.late.remove(each)
            self.set_reason(each[1], each[2])

    def wait_long(self) -> None:
        self.pass_time(LOST_REPLY_S)

    def scale(self) -> None:
        self.wanted = self.rng.randrange(MOST + 1)

    def change_template(self) -> None:
        """There is another one, which may not work; or one comes back."""
        self.template = self.rng.randrange(1, 4)
        self.broken = {self.template} if self.rng.random() < 0.3 else set()

    def cordon(self) -> None:
        self.cordoned ^= {self.rng.randrange(MOST)}

    def drain_by_somebody(self) -> None:
        """Somebody drains a node in service, or lifts such a drain."""
        number = self.rng.randrange(MOST)
        node = self.slurm.get(number)
        if node is None or node.reason.startswith(REASON_PREFIX):
            return
        self.foreign ^= {number}
        self.lifted.add(number)
        self.lifted_at_s[number] = self.now_s
        node.reason = "broken fan" if number in self.foreign else ""

    def evict(self) -> None:
        """Somebody evicts all that the budget does not refuse: those that are not protected."""
        for number, pod in list(self.pods.items()):
            if pod.stage is PodStage.READY and not pod.is_protected:
                is_free = not self.slurm[number].jobs
                assert is_free or number in self.lifted, "a worker with jobs could be evicted"
                self.store(number, replace(pod, stage=PodStage.TERMINATING))

    def progress(self) -> None:
        """A pod comes a step further; a slurmd registers."""
        if not self.pods:
            return
        number = self.rng.choice(sorted(self.pods))
        pod = self.pods[number]
        if pod.stage is PodStage.UNSTARTED:
            self.store(number, replace(pod, stage=PodStage.STARTING))
        elif pod.stage is PodStage.STARTING and self.made_from[pod.uid] not in self.broken:
            self.slurm.setdefault(number, Node())
            self.store(number, replace(pod, stage=PodStage.READY))
        elif pod.stage is PodStage.TERMINATING:
            del self.pods[number]

    def crash(self) -> None:
        """A worker really dies."""
        running = [n for n, pod in self.pods.items() if pod.stage is PodStage.READY]
        if running:
            number = self.rng.choice(running)
            self.slurm[number].jobs.clear()
            self.store(number, replace(self.pods[number], stage=PodStage.OVER))

    def start_job(self) -> None:
        free = [
            number
            for number, pod in self.pods.items()
            if pod.stage is PodStage.READY and not self.slurm[number].reason
        ]
        if free:
            self.slurm[self.rng.choice(free)].jobs.add(next(self.numbers))

    def end_job(self) -> None:
        busy = [node for node in self.slurm.values() if node.jobs]
        if busy:
            self.rng.choice(busy).jobs.pop()

    # -- the leader -------------------------------------------------------------------------------

    def hear(self) -> None:
        self.cached = dict(self.pods)

    def read(self) -> None:
        """A reading begins, which shows jobs as they are or as at the reading before, whole or not; or one that began arrives."""
        if self.under_way is None:
            self.under_way = self.reading()
        if self.is_calm or self.rng.random() < 0.7:
            self.proof_from_s, self.last_began_s = self.last_began_s, self.under_way.began_s
            self.readings.read(self.under_way)
            self.under_way = None
        self.pass_time(0.01)

    def reading(self) -> WorkerReading:
        is_old = not self.is_calm and self.rng.random() < 0.5
        is_complete = self.is_calm or self.rng.random() < 0.9
        now = {number: frozenset(node.jobs) for number, node in self.slurm.items()}
        jobs = {**now, **self.before} if is_old else now
        self.before = now
        if not is_complete:
            jobs = {number: ids for number, ids in jobs.items() if self.rng.random() < 0.5}
        return WorkerReading(
            began_s=self.now_s,
            is_complete=is_complete,
            nodes={
                name(number): node.facts(name(number), jobs=jobs.get(number, frozenset()))
                for number, node in self.slurm.items()
                if is_complete or self.rng.random() < 0.7
            },
            with_jobs={name(number) for number, ids in jobs.items() if ids},
        )

    def fail_to_read(self) -> None:
        self.readings.failed()

    def die(self) -> None:
        """Another leader begins, which knows nothing; a request of the old one may be under way."""
        self.readings = WorkerReadings(lost_reply_s=LOST_REPLY_S)
        for number in self.slurm:
            self.readings.wrote(name(number), self.now_s, is_lost=True)
        self.hear()

    def look(self) -> None:
        try:
            for facts in self.facts():
                for action in table.decide(facts).actions:
                    self.carry_out(int(facts.name.rpartition("-")[2]), facts, action)
        except Died:
            self.die()

    def facts(self) -> list[WorkerFacts]:
        candidates = [
            RemovalCandidate(
                name=name(number),
                ordinal=number,
                pod=pod,
                seen=self.readings.seen(name(number)),
                is_cordoned=number in self.cordoned,
            )
            for number, pod in sorted(self.cached.items())
        ]
        gone = choosing.workers_to_remove(candidates, self.wanted)
        why = dict.fromkeys(gone, SCALED_IN)
        why |= dict.fromkeys(self.replaced(candidates, gone), REPLACED)
        coming = choosing.ordinals_to_create(self.cached, self.wanted)
        return [
            WorkerFacts(
                name=name(number),
                pod=self.cached.get(number),
                seen=self.readings.seen(name(number)),
                goes=why.get(name(number), ""),
                cordoned=CORDON if number in self.cordoned else "",
            )
            for number in sorted({*self.cached, *coming})
        ]

    def replaced(self, candidates: list[RemovalCandidate], gone: frozenset[str]) -> frozenset[str]:
        rolled = [
            UpdateCandidate(
                worker=candidate,
                is_current=self.made_from[candidate.pod.uid] == self.template,
                is_available=candidate.pod.stage is PodStage.READY,
            )
            for candidate in candidates
            if candidate.name not in gone
        ]
        return updating.to_replace(
            rolled, missing=max(self.wanted - len(rolled), 0), most_away=MOST_AWAY
        )

    def carry_out(  # noqa: C901  # one case for each action
        self, number: int, facts: WorkerFacts, action: WorkerAction
    ) -> None:
        if not self.is_calm and self.rng.random() < 0.05:
            raise Died
        self.history.append(f"{number}: {action}")
        match action:
            case CreateWorker():
                if number not in self.pods:
                    uid = f"u{next(self.numbers)}"
                    self.made_from[uid] = self.template
                    self.store(
                        number,
                        WorkerPod(
                            uid=uid,
                            resource_version="",
                            stage=PodStage.UNSTARTED,
                            is_protected=True,
                        ),
                    )
            case ProtectWorker():
                if (pod := self.pods.get(number)) is not None:
                    self.lifted.discard(number)
                    self.store(number, replace(pod, is_protected=True))
            case ReleaseWorker(uid=uid, resource_version=version):
                pod = self.pods.get(number)
                if pod is not None and (pod.uid, pod.resource_version) == (uid, version):
                    is_free = not self.slurm[number].jobs
                    assert is_free or number in self.lifted, "it released a worker with jobs"
                    self.store(number, replace(pod, is_protected=False))
            case DeleteWorker(uid=uid, resource_version=version):
                pod = self.pods.get(number)
                if pod is not None and (pod.uid, pod.resource_version) == (uid, version):
                    node = self.slurm.get(number)
                    is_over = pod.stage is PodStage.OVER
                    # What a worker does before its end waits for jobs that come by a drain lifted just now.
                    was_lifted = self.lifted_at_s.get(number, -1.0) >= self.proof_from_s
                    is_free = node is None or not node.jobs or was_lifted
                    assert is_over or is_free, "it deleted a worker with jobs"
                    assert facts.pod is not None
                    self.store(number, replace(pod, stage=PodStage.TERMINATING))
            case DrainWorker(reason=reason):
                assert reason.startswith(REASON_PREFIX), "it drains without its mark"
                self.ask(number, reason)
            case UndrainWorker():
                seen = facts.seen.node
                assert seen is not None, "it undrains what it does not see"
                assert seen.reason.startswith(REASON_PREFIX), "it lifts somebody's drain"
                known = [each for each in (facts.pod, self.pods.get(number)) if each]
                assert any(each.is_protected for each in known), (
                    "evictions may have what comes back"
                )
                self.ask(number, "")

    def ask(self, number: int, reason: str) -> None:
        """Ask Slurm for a drain or its end; the reply may be lost, and the request be carried out later or never."""
        chance = 1.0 if self.is_calm else self.rng.random()
        is_lost = chance < 0.3
        if chance < 0.2:
            self.late.append((self.now_s + self.rng.random() * LOST_REPLY_S * 0.9, number, reason))
        elif chance >= 0.25:
            self.set_reason(number, reason)
        self.pass_time(0.01)
        self.readings.wrote(name(number), self.now_s, is_lost=is_lost)

    def set_reason(self, number: int, reason: str) -> None:
        """Slurm itself cannot know whose drain it is; a foreign one that came meanwhile is a race that nobody wins."""
        node = self.slurm.get(number)
        if node is not None:
            node.reason = reason
            self.foreign.discard(number)

    def store(self, number: int, pod: WorkerPod) -> None:
        self.pods[number] = replace(pod, resource_version=str(next(self.numbers)))

    # -- in the end -------------------------------------------------------------------------------

    def settle(self) -> None:
        """Nothing else goes wrong and jobs end: everything becomes as it should be."""
        self.calm_down()
        ready = [pod for pod in self.pods.values() if pod.stage is PodStage.READY]
        assert len(ready) == len(self.pods) == self.wanted, "it has not as many workers as wanted"
        for pod in self.pods.values():
            is_current = self.made_from[pod.uid] == self.template
            waits = len(self.cordoned | self.foreign) >= MOST_AWAY
            assert is_current or waits, "it has another template"
        self.check_drains()

    def calm_down(self) -> None:
        """Let everything go on for long enough."""
        self.is_calm = True
        self.under_way = None
        self.broken = set()
        self.wait_long()
        for _ in range(150):
            self.pass_time(1)
            self.progress()
            self.end_job()
            self.hear()
            self.read()
            self.look()

    def check_drains(self) -> None:
        """Check that each drain says what holds, and that evictions have what they may have."""
        for number, pod in self.pods.items():
            released = number in self.cordoned
            assert pod.is_protected != released, "evictions wait, or may have what is in service"
            reason, cordoned = self.slurm[number].reason, number in self.cordoned
            if number in self.foreign:
                assert not reason.startswith(REASON_PREFIX), "it took over somebody's drain"
            else:
                expected = f"{REASON_PREFIX}{CORDON}" if cordoned else ""
                assert reason == expected, "a drain does not say what holds"


def name(number: int) -> str:
    return f"gpu-{number}"


def play(seed: int, steps: int = 120, *, has_updates: bool = False) -> None:
    """Play one history; the same seed gives the same."""
    world = World(Random(seed))  # noqa: S311  # histories, not secrets
    world.has_updates = has_updates
    try:
        for _ in range(steps):
            world.step()
        world.settle()
    except AssertionError as failed:
        failed.add_note(f"seed {seed}: {world.history[-30:]}")
        raise
