"""A NodeSet whose template changes, and nothing else: in memory, in its own time."""

from collections.abc import Callable
from random import Random

from typing_extensions import override

from slurmoperator.workers.situation import PodStage
from tests.slurmoperator.workers.world import MOST, MOST_AWAY, World


class Update(World):
    """Nothing happens but updates: so no more workers are away than may be."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.wanted = MOST
        self.settle()
        self.is_calm = False

    @override
    def step(self) -> None:
        steps: dict[Callable[[], None], float] = {
            self.look: 10,
            self.read: 10,
            self.hear: 8,
            self.progress: 8,
            self.start_job: 8,
            self.end_job: 5,
            self.fail_to_read: 1,
            self.die: 1,
            self.wait_long: 1,
        }
        (chosen,) = self.rng.choices(list(steps), list(steps.values()))
        self.pass_time(self.rng.random())
        self.history.append(chosen.__name__)
        chosen()
        away = [
            number
            for number, pod in self.pods.items()
            if pod.stage is not PodStage.READY or self.slurm[number].reason
        ]
        assert len(away) + MOST - len(self.pods) <= MOST_AWAY, "too many are away for an update"


def play_update(seed: int, steps: int = 150) -> None:
    """Play one update, perhaps to a template that does not work, and back; the same seed gives the same."""
    world = Update(Random(seed))  # noqa: S311  # histories, not secrets
    try:
        world.template = 2
        world.broken = {2} if seed % 2 else set()
        for _ in range(steps):
            world.step()
        if seed % 2:
            serving = [p for p in world.pods.values() if world.made_from[p.uid] == 1]
            assert len(serving) >= MOST - MOST_AWAY, "a broken template went too far"
            world.template = 1
            for _ in range(steps):
                world.step()
        world.settle()
    except AssertionError as failed:
        failed.add_note(f"seed {seed}: {world.history[-30:]}")
        raise
