"""What counts as known of Slurm's nodes: one short list changes nothing, and no list counts from before a write."""

from bridge.domain.observation.node_book import UNKNOWN, NodeBook
from slurmruntime.values.ids import SlurmNode
from tests.make import placing as build

A, B = build.slurm_node("a"), build.slurm_node("b")
DRAINED = build.slurm_node("a", states=frozenset({"IDLE", "DRAIN"}))


def read_book() -> NodeBook:
    book = NodeBook()
    book.read([A, B], began=1)
    return book


def test_nothing_is_known_before_the_first_list() -> None:
    assert UNKNOWN is NodeBook().get(A.name)


def test_who_asked_too_early_is_told_when_it_is_known() -> None:
    """Also that Slurm has no such node: a new Slurm has none at all, and nobody else would ask again."""
    book = NodeBook()
    assert UNKNOWN is book.get(A.name)

    assert {A.name} == book.read([], began=1)
    assert book.get(A.name) is None
    book.wrote(A.name, at=5)
    assert UNKNOWN is book.get(A.name)
    assert frozenset() == book.read([], began=4)
    assert {A.name} == book.read([A], began=6)
    assert frozenset() == book.read([A], began=7)


def test_a_list_tells_what_has_changed() -> None:
    book = NodeBook()

    assert {A.name, B.name} == book.read([A, B], began=1)
    assert frozenset() == book.read([A, B], began=2)
    assert {A.name} == book.read([DRAINED, B], began=3)
    assert (DRAINED, None) == (book.get(A.name), book.get(SlurmNode("c")))


def test_one_list_without_a_node_means_nothing_two_do() -> None:
    book = read_book()

    assert frozenset() == book.read([], began=2)
    assert (UNKNOWN, UNKNOWN, False) == (book.get(A.name), book.get(B.name), book.is_settled)
    assert {A.name, B.name} == book.read([B], began=3)
    assert (None, B, True) == (book.get(A.name), book.get(B.name), book.is_settled)


def test_what_was_written_to_is_unknown_until_a_list_that_began_later() -> None:
    book = read_book()
    book.wrote(A.name, at=5)

    assert frozenset() == book.read([A, B], began=4)
    assert (UNKNOWN, False) == (book.get(A.name), book.is_settled)
    assert {A.name} == book.read([A, B], began=6)
    assert (A, True) == (book.get(A.name), book.is_settled)


def test_what_was_created_and_is_not_there_is_looked_at_again() -> None:
    book = read_book()
    book.wrote(SlurmNode("c"), at=5)

    assert {SlurmNode("c")} == book.read([A, B], began=6)
    assert book.get(SlurmNode("c")) is None


def test_a_list_from_before_a_look_at_one_node_does_not_bring_the_old_one_back() -> None:
    book = read_book()
    book.saw(A.name, None, at=5)

    assert frozenset() == book.read([A, B], began=4)
    assert book.get(A.name) is None
    assert {A.name} == book.read([A, B], began=6)


def test_a_look_from_before_a_write_does_not_count() -> None:
    book = read_book()
    book.wrote(A.name, at=5)
    book.saw(A.name, A, at=4)

    assert UNKNOWN is book.get(A.name)
