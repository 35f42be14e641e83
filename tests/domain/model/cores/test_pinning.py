"""Who is pinned, and that no processor is ever in two sets."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model.cores import cpu_list, pinning
from bridge.domain.model.cores.pinning import NoPinReason
from slurmruntime.values.ids import PodUid

FOUR = (0, 2, 1, 3)


def plan(**told: str) -> dict[str, object]:
    pods = {PodUid(uid): text for uid, text in told.items()}
    return {str(uid): own for uid, own in pinning.plan(pods, FOUR, range(4)).items()}


def test_each_gets_the_processors_behind_its_cpus() -> None:
    assert {"a": {0, 2}, "b": {1}} == plan(a="0-1", b="2")


def test_two_that_were_told_the_same_are_left_alone() -> None:
    """Slurm shares cores of such a partition, or one of them is an ended job's."""
    assert {"a": NoPinReason.SHARED, "b": NoPinReason.SHARED, "c": {3}} == plan(
        a="0-1", b="1-2", c="3"
    )


def test_what_cannot_be_used_costs_its_own_pod_only() -> None:
    found = plan(a="", b="x", c="4", d="0")

    assert {
        "a": NoPinReason.UNTOLD,
        "b": NoPinReason.UNREADABLE,
        "c": NoPinReason.BEYOND,
        "d": {0},
    } == found


@given(
    st.lists(
        st.one_of(st.frozensets(st.integers(0, 9), max_size=4).map(cpu_list.render), st.text()),
        max_size=8,
    ),
    st.permutations(range(8)),
)
def test_no_processor_is_in_two_sets(told: list[str], order: list[int]) -> None:
    pods = {PodUid(str(number)): text for number, text in enumerate(told)}
    sets = [
        own
        for own in pinning.plan(pods, order, range(8)).values()
        if not isinstance(own, NoPinReason)
    ]

    assert not [(a, b) for a, b in combinations(sets, 2) if a & b]
