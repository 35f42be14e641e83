"""When a reading of Slurm counts: what began before our last write says nothing, absence once says nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from bridge.domain.model.jobs import JobEnd, SlurmJob
from bridge.domain.observation.view import Book, Evidence, Past, View
from slurmruntime.values.ids import PodUid, WorkloadKey, alone_key
from tests.make import lives as build

UID = PodUid("pod-1")
KEY = alone_key(UID)
QUIET_S = 10.0


@dataclass(frozen=True)
class Snapshot:
    began_monotonic: float
    by_key: Mapping[WorkloadKey, tuple[SlurmJob, ...]] = field(default_factory=dict)
    is_whole: bool = True
    unsure: frozenset[WorkloadKey] = frozenset()


def absent(began: float) -> Snapshot:
    return Snapshot(began)


def shown(began: float, *jobs: SlurmJob) -> Snapshot:
    return Snapshot(began, {KEY: jobs})


def a_book(past: Past | None = Past.NOTHING, *, at: float = 0.0) -> Book:
    book = Book(quiet_s=QUIET_S)
    if past is not None:
        book.meet(KEY, past, at=at)
    return book


def told(view: View) -> tuple[bool, bool]:
    return view.fresh, view.surely_none


NOT_FRESH = (False, False)
FRESH = (True, False)
SURELY_NONE = (True, True)


def test_nothing_is_known_before_the_first_reading() -> None:
    assert View(reachable=False) == a_book().view(KEY, pod=UID, version="1")


def test_a_failed_reading_takes_everything_back() -> None:
    book = a_book()
    book.read(absent(1.0))
    book.failed()

    assert View(reachable=False) == book.view(KEY, pod=UID, version="1")


def test_a_workload_it_never_met_is_nothing_to_act_on() -> None:
    book = a_book(None)
    book.read(absent(1.0))
    book.read(absent(2.0))

    assert told(book.view(KEY, pod=UID, version="1")) == NOT_FRESH


def test_a_workload_that_nobody_wrote_about_surely_has_none_at_once() -> None:
    book = a_book(Past.NOTHING, at=5.0)
    book.read(absent(1.0))

    assert told(book.view(KEY, pod=UID, version="1")) == SURELY_NONE


def test_a_placeholder_that_a_deposed_leader_submitted_is_seen_all_the_same() -> None:
    book = a_book(Past.NOTHING)
    book.read(shown(1.0, build.waiting()))

    view = book.view(KEY, pod=UID, version="1")
    assert told(view) == FRESH
    assert (build.waiting(),) == view.jobs


@pytest.mark.parametrize(
    ("write", "settled_at"),
    [
        pytest.param(lambda book: book.wrote(KEY, at=5.0), 5.0, id="an answered write"),
        pytest.param(
            lambda book: book.wrote(KEY, at=5.0, may_still_happen=True),
            5.0 + QUIET_S,
            id="a submit whose reply was lost",
        ),
    ],
)
class TestAfterAWrite:
    def after(self, write: Callable[[Book], None], *readings: Snapshot) -> tuple[bool, bool]:
        book = a_book()
        book.read(absent(1.0))
        write(book)
        for reading in readings:
            book.read(reading)
        return told(book.view(KEY, pod=UID, version="1"))

    def test_what_was_read_before_says_nothing(
        self, write: Callable[[Book], None], settled_at: float
    ) -> None:
        assert self.after(write) == NOT_FRESH

    def test_a_reading_that_was_under_way_says_nothing(
        self, write: Callable[[Book], None], settled_at: float
    ) -> None:
        assert self.after(write, absent(4.9), absent(5.0)) == NOT_FRESH

    def test_absence_once_is_not_enough(
        self, write: Callable[[Book], None], settled_at: float
    ) -> None:
        assert self.after(write, absent(settled_at + 0.1)) == FRESH

    def test_absence_twice_is_enough(
        self, write: Callable[[Book], None], settled_at: float
    ) -> None:
        assert self.after(write, absent(settled_at + 0.1), absent(settled_at + 0.2)) == SURELY_NONE

    def test_the_end_shown_by_slurm_itself_is_enough_once(
        self, write: Callable[[Book], None], settled_at: float
    ) -> None:
        assert self.after(write, shown(settled_at + 0.1, build.ended())) == SURELY_NONE

    def test_a_live_one_beside_an_ended_one_is_live(
        self, write: Callable[[Book], None], settled_at: float
    ) -> None:
        both = shown(settled_at + 0.1, build.ended(), build.waiting(number=4712))

        assert self.after(write, both, both) == FRESH


def test_absence_while_a_lost_submit_may_still_be_accepted_does_not_count() -> None:
    book = a_book()
    book.wrote(KEY, at=5.0, may_still_happen=True)
    book.read(absent(5.0 + QUIET_S))
    book.read(absent(5.1 + QUIET_S))

    assert told(book.view(KEY, pod=UID, version="1")) == FRESH


def test_a_live_one_that_vanishes_has_to_be_absent_twice() -> None:
    book = a_book(Past.HANDED_OVER)
    book.read(shown(1.0, build.job()))
    book.read(absent(2.0))
    once = book.view(KEY, pod=UID, version="1")
    book.read(absent(3.0))

    assert [told(once), told(book.view(KEY, pod=UID, version="1"))] == [FRESH, SURELY_NONE]


def test_absence_on_both_sides_of_a_failed_reading_is_absence_once() -> None:
    book = a_book(Past.HANDED_OVER)
    book.read(absent(1.0))
    book.failed()
    book.read(absent(2.0))

    assert told(book.view(KEY, pod=UID, version="1")) == FRESH


def test_what_another_program_wrote_counts_as_written_when_we_met_it() -> None:
    book = a_book(Past.HANDED_OVER, at=5.0)
    book.read(shown(4.0, build.ended(JobEnd.NODE_FAIL)))
    early = book.view(KEY, pod=UID, version="1")
    book.read(shown(5.5, build.ended(JobEnd.NODE_FAIL)))

    assert [told(early), told(book.view(KEY, pod=UID, version="1"))] == [NOT_FRESH, SURELY_NONE]


def test_a_predecessors_submit_may_still_turn_up_for_a_while() -> None:
    book = a_book(Past.IN_FLIGHT, at=5.0)
    book.read(absent(6.0))
    book.read(absent(7.0))
    early = book.view(KEY, pod=UID, version="1")
    book.read(absent(15.1))
    book.read(absent(15.2))

    assert [told(early), told(book.view(KEY, pod=UID, version="1"))] == [FRESH, SURELY_NONE]


def test_an_answered_write_does_not_shorten_the_quiet_time_of_a_lost_one() -> None:
    book = a_book()
    book.wrote(KEY, at=5.0, may_still_happen=True)
    book.wrote(KEY, at=6.0)
    book.read(absent(7.0))
    book.read(absent(8.0))

    assert told(book.view(KEY, pod=UID, version="1")) == FRESH


def test_meeting_it_again_changes_nothing() -> None:
    book = a_book(Past.NOTHING)
    book.meet(KEY, Past.IN_FLIGHT, at=3.0)
    book.read(absent(1.0))

    assert told(book.view(KEY, pod=UID, version="1")) == SURELY_NONE


def test_what_was_forgotten_is_nothing_to_act_on() -> None:
    book = a_book(Past.NOTHING)
    book.read(absent(1.0))
    book.forget(KEY)
    book.forget(KEY)

    assert told(book.view(KEY, pod=UID, version="1")) == NOT_FRESH


def test_readings_are_no_evidence() -> None:
    book = a_book()
    book.read(absent(1.0))

    assert book.view(KEY, pod=UID, version="1").evidence is Evidence.NONE


class TestAfterAWriteToThePod:
    def a_patched_book(self) -> Book:
        book = a_book()
        book.read(absent(1.0))
        book.patched(UID, version="1", at=2.0)
        book.read(absent(3.0))
        return book

    def test_the_version_it_was_decided_on_is_nothing_to_act_on(self) -> None:
        assert not self.a_patched_book().view(KEY, pod=UID, version="1").fresh

    def test_the_next_version_is(self) -> None:
        assert self.a_patched_book().view(KEY, pod=UID, version="2").fresh

    def test_so_is_the_old_one_when_the_write_surely_did_not_happen(self) -> None:
        book = self.a_patched_book()
        book.read(absent(2.1 + QUIET_S))

        assert book.view(KEY, pod=UID, version="1").fresh

    def test_it_says_nothing_about_slurm(self) -> None:
        assert self.a_patched_book().view(KEY, pod=UID, version="1").surely_none


@pytest.mark.parametrize("left_out", [0, 1])
def test_a_reading_that_leaves_jobs_out_says_nothing_of_absence(left_out: int) -> None:
    book = a_book()
    book.wrote(KEY, at=1.0)
    for number, began in enumerate((2.0, 3.0)):
        book.read(Snapshot(began, is_whole=number != left_out))

    assert FRESH == told(book.view(KEY, pod=UID, version="1"))

    for began in (4.0, 5.0):
        book.read(absent(began))
    assert SURELY_NONE == told(book.view(KEY, pod=UID, version="1"))


def test_nothing_is_concluded_about_a_workload_with_a_placeholder_that_cannot_be_read() -> None:
    book = a_book()
    book.read(Snapshot(1.0, unsure=frozenset({KEY})))
    book.read(Snapshot(2.0, unsure=frozenset({KEY})))

    view = book.view(KEY, pod=UID, version="1")

    assert (False, False, False) == (view.reachable, view.fresh, view.surely_none)


def test_what_was_read_before_a_pod_was_taken_over_says_nothing_of_it() -> None:
    """Its workload is known: the group was created again under its name while the old one ends."""
    book = a_book(Past.HANDED_OVER, at=0.0)
    book.receive(UID, Past.HANDED_OVER, at=0.0)
    newcomer = PodUid("pod-2")
    for began in (1.0, 2.0):
        book.read(absent(began))
    book.receive(newcomer, Past.HANDED_OVER, at=3.0)
    book.receive(newcomer, Past.HANDED_OVER, at=9.0)

    assert told(book.view(KEY, pod=newcomer, version="1")) == NOT_FRESH
    assert told(book.view(KEY, pod=UID, version="1")) == SURELY_NONE
    book.read(absent(3.1))
    assert told(book.view(KEY, pod=newcomer, version="1")) == FRESH
    book.read(absent(3.2))
    assert told(book.view(KEY, pod=newcomer, version="1")) == SURELY_NONE
    book.forget_pod(newcomer)
    assert told(book.view(KEY, pod=newcomer, version="1")) == SURELY_NONE
