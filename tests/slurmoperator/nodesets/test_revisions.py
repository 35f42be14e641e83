"""Which templates of a NodeSet are kept."""

from dataclasses import replace

from slurmoperator.nodesets.revisions import retaining
from slurmoperator.nodesets.revisions.retaining import Revision


def revision(number: int, content: bytes, collisions: int = 0) -> Revision:
    found = retaining.hash_of(content, collisions)
    return Revision(
        name=f"gpu-{found}",
        hash=found,
        number=number,
        content=content,
        uid=f"u{number}",
        resource_version="1",
    )


A, B, C = (revision(number, each) for number, each in enumerate((b"a", b"b", b"c"), start=1))


def test_a_template_that_is_new_is_kept_and_one_that_is_there_is_not_written_again() -> None:
    first = retaining.plan(b"a", [], in_use=(), limit=0, collisions=0)
    assert (True, 1, A.hash) == (first.is_new, first.number, first.hash)

    again = retaining.plan(b"a", [A], in_use=[A.hash], limit=0, collisions=0)
    assert (False, None, ()) == (again.is_new, again.raised, again.dropped)


def test_a_template_that_comes_back_is_raised() -> None:
    found = retaining.plan(b"a", [A, B], in_use=[B.hash], limit=0, collisions=0)

    assert (False, A, 3, A.hash) == (found.is_new, found.raised, found.number, found.hash)
    assert () == found.dropped, "pods were made from the other one"


def test_the_oldest_that_nobody_needs_go() -> None:
    kept = [C, A, B]
    for limit, dropped in ((0, (A, B)), (1, (A,)), (2, ())):
        found = retaining.plan(b"c", kept, in_use=[C.hash], limit=limit, collisions=0)
        assert dropped == found.dropped
    used = retaining.plan(b"c", kept, in_use=[C.hash, A.hash], limit=0, collisions=0)
    assert (B,) == used.dropped


def test_a_hash_that_another_template_has_is_not_used() -> None:
    taken = replace(A, content=b"other")
    found = retaining.plan(b"a", [taken], in_use=[taken.hash], limit=0, collisions=0)

    assert (True, 1) == (found.is_new, found.collisions)
    assert taken.hash != found.hash == retaining.hash_of(b"a", 1)
