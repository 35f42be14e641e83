"""Two never lead at once, whatever happens to their calls and clocks, and in the end one does."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.leading.lease_faults import (
    CALM_AT_S,
    FREEZES,
    SETTLED_AT_S,
    TIGHT,
    Trouble,
    unexcused,
)
from tests.leading.lease_world import Election


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    names=st.sampled_from(["ab", "abc"]),
    wrong_by_s=st.lists(st.integers(-86_400, 86_400), min_size=3, max_size=3),
    freezes=FREEZES,
    stops=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, CALM_AT_S)), max_size=1),
)
def test_two_never_lead_at_once_and_in_the_end_one_does(
    seed: int,
    names: str,
    wrong_by_s: list[int],
    freezes: list[tuple[str, float, float]],
    stops: list[tuple[str, float]],
) -> None:
    """Whatever the network and the clocks do, unless a leader stands still and cannot know."""
    election = Election(Trouble(seed, CALM_AT_S))
    contenders = {
        name: election.contender(name, wrong_by=timedelta(seconds=wrong), settings=TIGHT)
        for name, wrong in zip(names, wrong_by_s, strict=False)
    }
    for name, at_s, seconds in freezes:
        if name in contenders:
            contenders[name].freeze_at(at_s, seconds)
    for name, at_s in stops:
        contenders[name].stop_at(at_s)
    election.run(until_s=SETTLED_AT_S)
    leaders = [contender for contender in contenders.values() if contender.is_leading]
    election.world.close()

    assert 1 == len(leaders)
    assert [] == unexcused(list(contenders.values()), election.reigns)
