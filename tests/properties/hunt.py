"""Walk through histories at random until one shows a fault: `python -m tests.properties.hunt WORLD HISTORIES SEED [TROUBLE …]`.

The world is `pod` (`storm`: single pods, and all that may go wrong), `binder` (the same, bound by the extender) `gang` (`gang_world`: one gang, always seen afresh), or
`node` (`node_plans`: no histories, but arbitrary facts of one node).

Without Hypothesis, so nothing is shrunk, but ten times as fast: for mutants, which only have to be noticed, and for
long nights. Ends with 1 and tells the fault and its history if there is one.
"""

import random
import sys
from collections.abc import Sequence

from tests.properties import gang_world, node_plans
from tests.properties.settling import settle
from tests.properties.storm import Storm

STEPS = 50


def hunt(
    histories: int, seed: int, kinds: Sequence[str] = (), *, extender_binds: bool = False
) -> str:
    """Tell the first fault; "" if there is none. Kinds of trouble, if only some are wanted: `Storm.troubles`."""
    chance = random.Random(seed)  # noqa: S311 - nobody has to be unable to guess it
    for _ in range(histories):
        storm = Storm(chance.choice, kinds, extender_binds=extender_binds)
        try:
            storm.begin()
            for _ in range(chance.randrange(STEPS)):
                storm.step()
            settle(storm.stage)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a fault
            return f"{type(fault).__name__}: {fault}\n{storm}"
    return ""


def hunt_gang(histories: int, seed: int) -> str:
    """Do the same in the gang's world."""
    chance = random.Random(seed)  # noqa: S311 - nobody has to be unable to guess it
    for _ in range(histories):
        world = gang_world.World(chance.choice)
        try:
            world.live_through(chance.randrange(gang_world.STEPS))
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a fault
            return f"{type(fault).__name__}: {fault}\n{'; '.join(world.story)}"
    return ""


if __name__ == "__main__":
    which, histories, seed, *troubles = sys.argv[1:]
    found = (
        hunt_gang(int(histories), int(seed))
        if which == "gang"
        else node_plans.hunt(int(histories), int(seed))
        if which == "node"
        else hunt(int(histories), int(seed), troubles, extender_binds=which == "binder")
    )
    sys.stdout.write(found)
    sys.exit(1 if found else 0)
