"""Members onto nodes: never more on a node than Slurm gave, stable under permutation and restart."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model import allocation
from bridge.domain.model.allocation import Seat, TaskShare
from slurmruntime.values.ids import PodUid, SlurmNode

counts = st.lists(st.integers(1, 8), min_size=1, max_size=12)


def shares(tasks: list[int]) -> list[TaskShare]:
    return [TaskShare(node=SlurmNode(f"n{i}"), tasks=count) for i, count in enumerate(tasks)]


def pods(count: int) -> list[PodUid]:
    return [PodUid(f"pod-{rank}") for rank in range(count)]


def nodes(*names: str) -> tuple[SlurmNode, ...]:
    return tuple(map(SlurmNode, names))


def test_slots_follow_slurms_order_of_nodes() -> None:
    assert nodes("n0", "n0", "n1", "n2", "n2") == allocation.slots(shares([2, 1, 2]), 5)


def test_every_node_gets_one_and_the_first_ones_the_rest() -> None:
    assert nodes("n0", "n0", "n0", "n1", "n2") == allocation.slots(shares([4, 4, 4]), 5)


def test_a_partial_assignment_is_refused() -> None:
    assert () == allocation.slots(shares([2, 2]), 5)
    assert () == allocation.slots(shares([2, 0]), 2)
    assert () == allocation.slots([], 1)


def test_a_member_gets_the_slot_of_its_index_unless_it_is_taken() -> None:
    a, b, c = pods(3)
    found = allocation.seat(
        [a, b, c], nodes("n0", "n0", "n1", "n1"), taken=[1], wanted={a: 3, b: 1, c: 2}
    )
    assert {a: 3, c: 2, b: 0} == {uid: seat.slot for uid, seat in found.items()}


def test_who_finds_no_slot_gets_none() -> None:
    a, b = pods(2)
    assert {a: Seat(slot=1, node=SlurmNode("n1"))} == allocation.seat(
        [a, b], nodes("n0", "n1"), taken=[0]
    )


@given(counts, st.data())
def test_no_node_gets_more_than_its_share(tasks: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(len(tasks), sum(tasks)))
    found = allocation.seat(pods(size), allocation.slots(shares(tasks), size))
    assert set(pods(size)) == found.keys()
    for share in shares(tasks):
        assert 1 <= sum(seat.node == share.node for seat in found.values()) <= share.tasks
    assert sorted(seat.slot for seat in found.values()) == list(range(size))


@given(counts)
def test_each_knows_its_place_among_those_of_its_node(tasks: list[int]) -> None:
    found = allocation.seat(pods(sum(tasks)), allocation.slots(shares(tasks), sum(tasks)))
    for share in shares(tasks):
        there = [seat for seat in found.values() if seat.node == share.node]
        assert list(range(share.tasks)) == sorted(seat.local_rank for seat in there)
        assert {share.tasks} == {seat.local_size for seat in there}
        assert [seat.slot for seat in sorted(there, key=lambda seat: seat.local_rank)] == sorted(
            seat.slot for seat in there
        )


@given(counts, st.data())
def test_after_a_crash_in_the_middle_the_rest_get_what_they_would_have_got(
    tasks: list[int], data: st.DataObject
) -> None:
    members = pods(sum(tasks))
    slots = allocation.slots(shares(tasks), len(members))
    whole = allocation.seat(members, slots)
    placed = data.draw(st.sets(st.sampled_from(members)))

    rest = allocation.seat(
        [uid for uid in members if uid not in placed],
        slots,
        taken=[whole[uid].slot for uid in placed],
    )

    assert whole == {**rest, **{uid: whole[uid] for uid in placed}}


@given(counts)
def test_neighbouring_ranks_are_neighbours_in_slurms_order(tasks: list[int]) -> None:
    slots = allocation.slots(shares(tasks), sum(tasks))
    order = [int(node.removeprefix("n")) for node in slots]
    assert sorted(order) == order
