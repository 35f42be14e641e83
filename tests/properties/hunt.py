"""Walk through histories at random until one shows a fault: `python -m tests.properties.hunt HISTORIES [SEED]`.

Without Hypothesis, so nothing is shrunk, but ten times as fast: for mutants, which only have to be noticed, and for
long nights. Ends with 1 and tells the fault and its history if there is one.
"""

import random
import sys

from tests.properties.settling import settle
from tests.properties.storm import Storm

STEPS = 50


def hunt(histories: int, seed: int = 0) -> str:
    """Tell the first fault; "" if there is none."""
    chance = random.Random(seed)  # noqa: S311 - nobody has to be unable to guess it
    for _ in range(histories):
        storm = Storm(chance.choice)
        try:
            storm.begin()
            for _ in range(chance.randrange(STEPS)):
                storm.step()
            settle(storm.stage)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a fault
            return f"{type(fault).__name__}: {fault}\n{storm}"
    return ""


if __name__ == "__main__":
    found = hunt(*map(int, sys.argv[1:]))
    sys.stdout.write(found)
    sys.exit(1 if found else 0)
