"""The same world with one worker on each Kubernetes node that fits: nodes come and go, and a leader cannot read all of them."""

from random import Random
from typing import Final

from typing_extensions import override

from slurmoperator.nodesets.plan import placing
from slurmoperator.workers.actions import CreateWorker, DeleteWorker, DrainWorker, WorkerAction
from slurmoperator.workers.situation import PodStage, WorkerFacts
from slurmruntime.model.affinity import Selector
from slurmruntime.model.nodes import KubeNodeFacts, Taint
from slurmruntime.values.ids import KubeNode
from tests.slurmoperator.workers.world import CORDON, MOST, World, name

LABELS: Final = {"gpu": "yes"}
SELECTOR: Final = Selector((), LABELS)


class NodeWorld(World):
    """One history; a worker's number is its node's."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.there = {number for number in range(MOST) if rng.random() < 0.7}
        self.unselected: set[int] = set()
        self.tainted: dict[int, str] = {}
        """The effects of taints that workers do not tolerate."""
        self.unreadable: set[int] = set()

    @override
    def scale(self) -> None:
        """A node comes or goes, is selected or not, is tainted or not, or cannot be read for a while."""
        number = self.rng.randrange(MOST)
        changed = self.rng.choice((self.there, self.unselected, self.unreadable, None))
        if changed is not None:
            changed ^= {number}
        elif self.tainted.pop(number, None) is None:
            self.tainted[number] = self.rng.choice(("NoSchedule", "NoExecute"))

    @override
    def facts(self) -> list[WorkerFacts]:
        plan = placing.plan(
            [self.node(number) for number in sorted(self.there - self.unreadable)],
            {name(number): name(number) for number in self.cached},
            selector=SELECTOR,
            tolerations=(),
            owners={},
            unreadable={name(number) for number in self.there & self.unreadable},
        )
        coming = {number for number in range(MOST) if name(number) in plan.hosts}
        return [
            WorkerFacts(
                name=name(number),
                pod=self.cached.get(number),
                seen=self.readings.seen(name(number)),
                goes=plan.leaving.get(name(number), ""),
                cordoned=CORDON if number in self.cordoned else "",
            )
            for number in sorted({*self.cached, *coming})
        ]

    def node(self, number: int) -> KubeNodeFacts:
        effect = self.tainted.get(number)
        return KubeNodeFacts(
            name=KubeNode(name(number)),
            uid=name(number),
            labels={} if number in self.unselected else LABELS,
            taints=(Taint(key="rack", effect=effect),) if effect else (),
            is_unschedulable=number in self.cordoned,
        )

    @override
    def carry_out(self, number: int, facts: WorkerFacts, action: WorkerAction) -> None:
        is_over = facts.pod is not None and facts.pod.stage is PodStage.OVER
        match action:
            case CreateWorker():
                assert number not in self.cordoned, "a cordoned node gets a worker"
            case DeleteWorker() if number in self.there & self.unreadable:
                assert is_over, "it deleted the worker of a node that it could not read"
            case DrainWorker() if self.tainted.get(number) == "NoSchedule":
                does_fit = number in self.there and number not in self.unselected
                keeps = does_fit and number not in self.cordoned
                assert not keeps, "a taint that only keeps new pods away drained a worker"
        super().carry_out(number, facts, action)

    @override
    def settle(self) -> None:
        """Nodes stay as they are from now on; those that take workers have one, and others that must not have none."""
        self.unreadable.clear()
        may = {n for n in self.there - self.unselected if self.tainted.get(n) != "NoExecute"}
        must = {n for n in may - self.cordoned if n not in self.tainted}
        self.calm_down()
        ready = {n for n, pod in self.pods.items() if pod.stage is PodStage.READY}
        assert ready == self.pods.keys(), "a worker is not ready"
        assert must <= ready <= may, "there is not one on each node that fits"
        self.check_drains()


def play_on_nodes(seed: int, steps: int = 120) -> None:
    """Play one history; the same seed gives the same."""
    world = NodeWorld(Random(seed))  # noqa: S311  # histories, not secrets
    try:
        for _ in range(steps):
            world.step()
        world.settle()
    except AssertionError as failed:
        failed.add_note(f"seed {seed}: {world.history[-30:]}")
        raise
