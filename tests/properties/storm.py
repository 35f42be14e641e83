"""What may happen to a pod, its placeholders and our leaders, one step after the other.

Replies get lost, requests arrive late, views lag, leaders die between two writes or go on after they were deposed,
slurmctld crashes back to what it saved and gives job ids out again, administrators and users do as they please.

A history begins anywhere in a pod's life, and most of its steps go on with it: otherwise hardly any pod would get far
enough for trouble to matter. Each history has only some kinds of trouble, and those often, because faults need the
same trouble twice more often than all kinds once ("swarm testing", Groce et al. 2012).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from typing_extensions import override

from bridge.domain.lifecycle.decision import Actor, Fit
from bridge.domain.model.jobs import JobEnd, JobPhase
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.properties import binding
from tests.properties.agent import Agent, Fault, Reading
from tests.properties.cluster_model import FOREIGN_GATE, KUBE_NODES, UID
from tests.properties.slurm_model import NODES, OTHERS
from tests.properties.stage import MEANT, Stage, Strike

T = TypeVar("T")

BEGINNINGS = (0, 0, 1, 1, 2, 3, 4, 5, 6)
"""Rounds of undisturbed life: after six it runs."""
ENDS = (JobEnd.CANCELLED, JobEnd.NODE_FAIL, JobEnd.PREEMPTED, JobEnd.TIMEOUT)
LIMITS_MIN = (1, 2, 5)
SHRUNK_AT_MOST = 2
"""After three nothing is submitted any more, and the pod does not settle."""
KINDS_OF_TROUBLE = range(1, 6)
TROUBLE_AMONG_STEPS = (True, False, False)


class Choose(Protocol):
    """Who decides: Hypothesis, which shrinks what it chose, or a random number generator, which is fast."""

    def __call__(self, among: Sequence[T], /) -> T:
        """Choose one."""


class Storm:
    """One history."""

    def __init__(
        self, choose: Choose, kinds: Sequence[str] = (), *, extender_binds: bool = False
    ) -> None:
        """Begin with some kinds of `troubles`; with none given `choose` chooses."""
        self.choose = choose
        self.stage = Stage()
        self.cluster, self.slurm = self.stage.cluster, self.stage.slurm
        if extender_binds:
            self.cluster.change(scheduler_name=names.binder(names.SCHEDULER_NAME))
        self.is_full = False
        """Slurm has nothing free: what waits goes on waiting."""
        self.shrunk = 0
        self.story: list[str] = []
        every = sorted(self.troubles())
        self.kinds = kinds or [choose(every) for _ in range(choose(KINDS_OF_TROUBLE))]

    def begin(self) -> None:
        if "another controller's gate" not in self.kinds:
            self.cluster.lift(FOREIGN_GATE)
        if "a time limit" in self.kinds:
            self.slurm.limit_min = self.choose(LIMITS_MIN)
        for _ in range(self.choose(BEGINNINGS)):
            self.life_goes_on()
        self.story.append("and then")

    def step(self) -> None:
        """Let one thing happen, and see that the contracts hold."""
        if self.choose(TROUBLE_AMONG_STEPS):
            kind = self.choose(self.kinds)
            self.story.append(kind)
            self.troubles()[kind]()
        else:
            step = self.choose(self.life())
            self.story.append(step.__name__)
            step()
        self.stage.check()

    # --- life ---------------------------------------------------------------------------

    def life(self) -> list[Callable[[], None]]:
        """Steps that go on with a life; twice what should happen more often."""
        return [
            self.life_goes_on,
            self.life_goes_on,
            self.a_leader_works,
            self.a_leader_works_on_what_it_knows,
            self.slurm_starts_what_waits,
            self.kubelet_and_scheduler_go_on,
            self.the_container_exits,
            self.orphans_are_collected,
            self.time_passes,
        ]

    def life_goes_on(self) -> None:
        self.stage.passes(1)
        for agent in list(self.stage.leaders.values()):
            self.works(agent)
        self.slurm_starts_what_waits()
        self.kubelet_and_scheduler_go_on()

    def a_leader_works(self) -> None:
        self.works(self.some_leader())

    def works(
        self,
        agent: Agent,
        *,
        watches: bool = True,
        looks: bool = True,
        strike: Strike | None = None,
    ) -> None:
        if watches:
            agent.sees(self.cluster.pod, self.stage.clock)
        if looks:
            self.stage.looks(agent)
        self.stage.acts(agent, strike)

    def slurm_starts_what_waits(self) -> None:
        for job in self.slurm.ours(live=True):
            nodes = [node for node in NODES if node not in job.avoid]
            may_start = nodes and not job.seen.held and not self.is_full
            if job.seen.phase is JobPhase.WAITING and may_start:
                self.slurm.start(job, self.choose(nodes), self.stage.now)

    def kubelet_and_scheduler_go_on(self) -> None:
        next(self.towards_running())()

    def towards_running(self) -> Iterator[Callable[[], None]]:
        cluster = self.cluster
        if cluster.when(lambda pod: not pod.is_bound):
            yield self.somebody_binds
        if cluster.when(lambda pod: pod.is_deleting):
            yield lambda: cluster.kubelet_stops_deleted(self.stage.now)
        if cluster.when(lambda pod: pod.start_time is None):
            yield lambda: cluster.kubelet_accepts(self.stage.now)
        if not cluster.is_running and not cluster.has_ended:
            yield cluster.kubelet_starts
        yield cluster.kubelet_reports
        yield cluster.kubelet_lets_go

    def somebody_binds(self) -> None:
        """The extender's leader may have seen too little for it, and a deposed one does not know that it is."""
        if not self.cluster.when(lambda pod: pod.is_for_binder):
            self.cluster.bind()
            return
        deposed = [each for each in self.stage.deposed if each.actor is Actor.EXTENDER]
        agent = self.choose([self.stage.leaders[Actor.EXTENDER], *deposed])
        if self.choose((True, True, False)):
            agent.sees(self.cluster.pod, self.stage.clock)
        fault = self.choose((None, None, Fault.REQUEST_LOST, Fault.REPLY_LOST, Fault.DEATH))
        binding.looks_at(self.stage, agent, fault)

    def the_container_exits(self) -> None:
        self.stage.passes(1)
        self.cluster.exits(self.choose((0, 3)), self.stage.now)
        self.stage.passes(1)

    def orphans_are_collected(self) -> None:
        if self.slurm.reachable:
            self.stage.collect_orphans(is_synced=self.choose((True, False)))

    def time_passes(self) -> None:
        self.stage.passes(self.choose((1, 5, 12)))

    # --- trouble ----------------------------------------------------------------------------

    def troubles(self) -> dict[str, Callable[[], object]]:
        return {
            "a write goes wrong": self.a_write_goes_wrong,
            "a reading is slow": self.a_reading_is_slow,
            "Slurm gives half an answer": self.a_reading_lacks_our_jobs,
            "a leader is deposed and goes on": self.a_deposed_leader_works,
            "a deposed leader submits": self.a_deposed_leader_submits,
            "somebody ends a placeholder": self.somebody_ends_a_placeholder,
            "Slurm finds it impossible": self.slurm_finds_it_impossible,
            "its user shrinks it": self.its_user_shrinks_it,
            "somebody holds or suspends it": self.somebody_holds_or_suspends_it,
            "Slurm has nothing free": self.slurm_fills_or_empties,
            "Slurm forgets what has ended": self.slurm.purge,
            "Slurm cannot be reached for a while": self.slurm.come_or_go,
            "slurmctld crashes": self.slurm_saves_or_crashes,
            "somebody deletes the pod": self.somebody_deletes_the_pod,
            "somebody breaks the glass": self.somebody_breaks_the_glass,
            "another controller's gate": lambda: self.cluster.lift(FOREIGN_GATE),
            "a time limit": self.an_administrator_changes_the_limit,
            "nodes fill and empty": self.a_node_fills_or_empties,
            "nodes come and go": self.a_node_comes_or_goes,
            "kube-scheduler cannot bind it": self.kube_scheduler_fails,
            "it takes long": lambda: self.stage.passes(self.choose((130, 700))),
        }

    def some_leader(self) -> Agent:
        return self.stage.leaders[self.choose(tuple(Actor))]

    def a_leader_works_on_what_it_knows(self) -> None:
        """Its watch lags, or it has not read Slurm again."""
        watches, looks = self.choose(((True, False), (False, True), (False, False)))
        self.works(self.some_leader(), watches=watches, looks=looks)

    def a_write_goes_wrong(self) -> None:
        strike = self.choose((0, 0, 1)), self.choose(tuple(Fault))
        self.works(self.some_leader(), strike=strike)

    def a_reading_is_slow(self) -> None:
        """What was begun before arrives now, and is acted on; the next begins."""
        agent = self.some_leader()
        if agent.under_way is not None:
            agent.reads(agent.under_way)
            self.works(agent, looks=False)
        self.stage.passes(0.01)
        agent.under_way = self.stage.reading() if self.slurm.reachable else None

    def a_reading_lacks_our_jobs(self) -> None:
        """Once: the next one is whole again."""
        agent = self.some_leader()
        agent.sees(self.cluster.pod, self.stage.clock)
        self.stage.passes(0.01)
        agent.reads(Reading(self.stage.clock, {}))
        self.works(agent, looks=False)
        self.stage.looks(agent)

    def a_deposed_leader_works(self) -> None:
        if not self.stage.deposed or self.choose((True, False, False, False)):
            self.stage.depose(self.choose(tuple(Actor)))
        watches, looks = self.choose((True, False)), self.choose((True, False))
        self.works(self.choose(self.stage.deposed), watches=watches, looks=looks)

    def a_deposed_leader_submits(self) -> None:
        """It was paused before it sent the request."""
        job = self.slurm.submit(UID, "deposed", self.stage.now)
        self.stage.excused.add(job.key)

    def somebody_ends_a_placeholder(self) -> None:
        for job in self.slurm.ours(live=True)[:1]:
            end = self.choose(ENDS)
            self.slurm.end(job, end, OTHERS)
            self.stage.was_meant_to_end |= end in MEANT

    def slurm_finds_it_impossible(self) -> None:
        """It never had a node: what stands in for a lost one may ask for what the node has no longer."""
        for job in self.slurm.ours(live=True):
            if job.seen.phase is JobPhase.WAITING and not job.seen.nodes:
                self.slurm.end(job, JobEnd.FAILED, OTHERS)

    def its_user_shrinks_it(self) -> None:
        """While it waits."""
        for job in self.slurm.ours(live=True):
            if job.seen.phase is JobPhase.WAITING and self.shrunk < SHRUNK_AT_MOST:
                self.shrunk += 1
                job.is_shrunk = True

    def somebody_holds_or_suspends_it(self) -> None:
        for job in self.slurm.ours(live=True)[:1]:
            if job.seen.phase is JobPhase.WAITING:
                job.change(held=not job.seen.held)
            else:
                runs = job.seen.phase is JobPhase.RUNNING
                job.change(phase=JobPhase.PAUSED if runs else JobPhase.RUNNING)

    def slurm_fills_or_empties(self) -> None:
        self.is_full = not self.is_full

    def slurm_saves_or_crashes(self) -> None:
        """After a crash ids are given out again, to strangers too, and for a moment nobody has seen it."""
        if self.choose((True, False, False)):
            self.slurm.save()
            return
        self.slurm.crash()
        for _ in range(self.choose((0, 1))):
            self.slurm.submit(UID, OTHERS, self.stage.now)
        self.works(self.some_leader(), looks=False)

    def somebody_deletes_the_pod(self) -> None:
        """The watch tells at once who has to act."""
        self.cluster.delete(self.stage.now, grace_s=self.choose((0, 30)))
        self.works(self.some_leader(), looks=self.choose((True, False)))

    def somebody_breaks_the_glass(self) -> None:
        if self.cluster.when(lambda pod: pod.is_deleting):
            self.cluster.release()
        elif self.choose((True, False, False)):
            self.cluster.lift(names.GATE)

    def an_administrator_changes_the_limit(self) -> None:
        """Or time goes by until it comes near."""
        for job in self.slurm.ours(live=True):
            shown_min = job.seen.time_limit_min
            if shown_min is not None and self.choose((True, False, False)):
                job.set_time_limit(shown_min + self.choose((-1, 1, 7)))
        self.stage.passes(self.choose((1, 30, 50)))

    def kube_scheduler_fails(self) -> None:
        """And says so on the pod."""
        self.cluster.is_unbindable = True

    def a_node_fills_or_empties(self) -> None:
        """The extender hears of it at once, and has not read Slurm again."""
        self.cluster.fits[KUBE_NODES[self.choose(NODES)]] = self.choose(tuple(Fit))
        self.works(self.stage.leaders[Actor.EXTENDER], looks=False)

    def a_node_comes_or_goes(self) -> None:
        node: SlurmNode = self.choose(NODES)
        if self.choose((True, False)):
            self.cluster.unknown_nodes ^= {node}
        else:
            self.cluster.lose_node(KUBE_NODES[node])

    @override
    def __str__(self) -> str:
        """The history, for whoever has to understand it."""
        return "; ".join(chain([f"with {', '.join(self.kinds)}"], self.story))
