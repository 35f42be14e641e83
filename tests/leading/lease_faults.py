"""What happens to contenders for a lease, and which of them led at the same moment."""

import itertools
import random

from hypothesis import strategies as st

from slurmruntime.leading.lease import LeaseTimes
from tests.leading.lease_world import Contender, Fate, Reign


def joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans that meet are one: nothing runs in between."""
    whole: list[tuple[float, float]] = []
    for began_s, ended_s in sorted(spans):
        if whole and began_s <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(ended_s, whole[-1][1])
        else:
            whole.append((began_s, ended_s))
    return whole


class Trouble:
    """A network that loses, delays and reorders until it has had enough."""

    def __init__(self, seed: int, over_at_s: float) -> None:
        self._rng = random.Random(seed)  # noqa: S311  # reproducible
        self._over_at_s = over_at_s

    def __call__(self, _who: str, at_s: float) -> Fate:
        if at_s >= self._over_at_s:
            return Fate(request_s=0.01, reply_s=0.01)
        return Fate(request_s=self._leg_s(), reply_s=self._leg_s())

    def _leg_s(self) -> float | None:
        match self._rng.randrange(8):
            case 0:
                return None
            case 1:
                return self._rng.uniform(0, 40)
            case _:
                return self._rng.uniform(0, 0.5)


def unexcused(contenders: list[Contender], reigns: list[Reign]) -> list[tuple[Reign, Reign]]:
    """Pairs that led at the same moment although neither was frozen."""
    frozen = {contender.name: joined(contender.frozen) for contender in contenders}

    def is_excused(overlap: tuple[float, float], *names: str) -> bool:
        began_s, ended_s = overlap
        spans = [span for name in names for span in frozen[name]]
        return any(span[0] <= began_s and ended_s <= span[1] for span in spans)

    return [
        (one, other)
        for one, other in itertools.combinations(reigns, 2)
        if one.who != other.who
        if (overlap := one.overlap(other)) and not is_excused(overlap, one.who, other.who)
    ]


TIGHT = LeaseTimes(duration_s=15, renew_deadline_s=14.99, retry_period_s=2)
"""No room for mistakes."""
CALM_AT_S = 200.0
SETTLED_AT_S = CALM_AT_S + 60
FREEZES = st.lists(
    st.tuples(st.sampled_from("abc"), st.floats(0, CALM_AT_S - 100), st.floats(0.1, 90)), max_size=5
)
