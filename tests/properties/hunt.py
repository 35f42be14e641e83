"""Walk through histories at random until one shows a fault: `python -m tests.properties.hunt HISTORIES SEED [TROUBLE …]`.

Without Hypothesis, so nothing is shrunk, but ten times as fast: for mutants, which only have to be noticed, and for
long nights. Ends with 1 and tells the fault and its history if there is one.
"""

import random
import sys
from collections.abc import Sequence

from tests.properties.settling import settle
from tests.properties.storm import Storm

STEPS = 50


def hunt(histories: int, seed: int, kinds: Sequence[str] = ()) -> str:
    """Tell the first fault; "" if there is none. Kinds of trouble, if only some are wanted: `Storm.troubles`."""
    chance = random.Random(seed)  # noqa: S311 - nobody has to be unable to guess it
    for _ in range(histories):
        storm = Storm(chance.choice, kinds)
        try:
            storm.begin()
            for _ in range(chance.randrange(STEPS)):
                storm.step()
            settle(storm.stage)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a fault
            return f"{type(fault).__name__}: {fault}\n{storm}"
    return ""


if __name__ == "__main__":
    found = hunt(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    sys.stdout.write(found)
    sys.exit(1 if found else 0)
