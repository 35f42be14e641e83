"""Very many jobs are asked for by their ids, and what is listed is what Slurm has."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmclient.errors import LostReply, TooOld
from slurmclient.watching import listing
from slurmclient.watching.listing import Lists
from slurmclient.watching.states import State, States
from slurmclient.wire.reading import Answer
from slurmruntime.values.ids import JobId

A = TypeVar("A", bound=Answer)
FEW, BATCH, SETTLED, DOUBTFUL = 3, 4, 2, 50


class Slurm:
    """Slurm as it is asked here; ids without a job are not in its answers."""

    def __init__(self, *ids: int) -> None:
        self.jobs = {str(id_): "PENDING" for id_ in ids}
        self.next_id = max(ids, default=0) + 1
        self.asked: list[Sequence[int] | None] = []
        """Ids of each request for states; None for all."""
        self.fails = False
        self.knows_numbering = self.counts = True
        self.canceled = 0
        self.now = 0.0

    async def call(
        self,
        label: str,
        operation: str,
        *,
        answer: type[A],
        query: Mapping[str, Any] | None = None,
    ) -> A:
        if operation == "slurm_get_diag":
            pending = len(self.jobs) if self.counts else 0
            body: Any = {"statistics": {"jobs_pending": pending, "jobs_canceled": self.canceled}}
        elif operation == "slurm_get_conf":
            if not self.knows_numbering:
                raise TooOld(label, "no such operation")
            numbering = {"set": True, "number": self.next_id}
            body = {
                "slurm_conf": {"MaxJobId": 9999},
                "slurm_conf_meta": {"NEXT_JOB_ID": numbering},
            }
        else:
            body = {"jobs": self._states((query or {})["job_id"])}
        return msgspec.json.decode(json.dumps(body), type=answer)

    def _states(self, ids: Sequence[int] | None) -> list[dict[str, Any]]:
        self.asked.append(ids)
        if self.fails:
            raise LostReply("job.states", "no response")
        return [
            {"job_id": text, "state": [state]}
            for text, state in self.jobs.items()
            if ids is None or set(ids) & set(listing.numbers(text))
        ]

    def lists(self, *named: int) -> Lists:
        return Lists(self, clock=lambda: self.now, arrays=True, named=lambda: map(JobId, named))

    def states(self) -> dict[int, frozenset[str]]:
        wired = json.dumps(self._states(None)).encode()
        self.asked.pop()
        told = msgspec.json.decode(wired, type=tuple[State, ...])
        return listing.by_id(States(b"", told), arrays=True)


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "AT_ONCE", FEW)
        patch.setattr(listing, "_NEVER_AT_ONCE", FEW + 2)
        patch.setattr(listing, "_DOUBTFUL_IDS", DOUBTFUL)
        patch.setattr(listing, "BATCH", BATCH)
        patch.setattr(listing, "_SETTLED", SETTLED)
        yield


def test_few_jobs_are_listed_at_once_and_very_many_never() -> None:
    async def main() -> None:
        few, many = Slurm(1, 2, 3), Slurm(*range(1, 11))
        lists = few.lists()
        assert await lists.read() is await lists.read()
        assert [None, None] == few.asked

        assert many.states() == (await many.lists().read()).states
        assert [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]] == many.asked

    asyncio.run(main())


def test_who_becomes_many_is_asked_for_from_then_on_and_new_ones_are_found() -> None:
    async def main() -> None:
        slurm = Slurm(70, 71)
        lists = slurm.lists()
        await lists.read()
        slurm.jobs.update({str(number): "PENDING" for number in range(72, 76)})
        slurm.next_id = 76
        await lists.read()
        slurm.asked.clear()
        slurm.jobs |= {"76": "PENDING", "71": "RUNNING"}
        slurm.next_id = 78

        found = await lists.read()

        assert slurm.states() == found.states
        assert [[70, 71, 72, 73], [74, 75, 76, 77]] == slurm.asked
        assert found is await lists.read()

    asyncio.run(main())


def test_very_many_jobs_are_not_listed_while_slurmctld_counts_nothing() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 11))
        lists = slurm.lists()
        first = await lists.read()
        slurm.jobs["10"] = "SUSPENDED"  # is not counted
        slurm.now, began = 9.9, lists.began
        slurm.asked.clear()

        assert first is await lists.read(surely=False)
        assert (began, 0.0, []) == (lists.began, lists.took_s, slurm.asked)

        slurm.canceled += 1
        slurm.jobs["9"] = "CANCELLED"
        assert slurm.states() == (await lists.read(surely=False)).states
        assert 9.9 == lists.began

        slurm.jobs["10"] = "PENDING"
        slurm.now = 19.9
        assert slurm.states() == (await lists.read(surely=False)).states

    asyncio.run(main())


def test_after_a_failure_very_many_jobs_are_listed_whatever_slurmctld_counts() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 11))
        lists = slurm.lists()
        await lists.read()
        slurm.fails = True
        with pytest.raises(LostReply):
            await lists.read()
        slurm.fails = False
        slurm.jobs["10"] = "SUSPENDED"

        assert slurm.states() == (await lists.read(surely=False)).states

    asyncio.run(main())


def test_conclusions_are_drawn_from_a_list_whatever_slurmctld_counts() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 11))
        lists = slurm.lists()
        await lists.read()
        slurm.jobs["10"] = "SUSPENDED"
        slurm.now = 1.0

        assert slurm.states() == (await lists.read(surely=True)).states
        assert 1.0 == lists.began

    asyncio.run(main())


def test_few_jobs_are_listed_each_time() -> None:
    async def main() -> None:
        slurm = Slurm(1, 2)
        lists = slurm.lists()
        await lists.read(surely=False)
        slurm.jobs["2"] = "SUSPENDED"

        assert slurm.states() == (await lists.read(surely=False)).states

    asyncio.run(main())


def test_nobody_asks_for_millions_of_ids_for_a_list_that_slurm_can_still_tell() -> None:
    async def main() -> None:
        slurm = Slurm(*range(9_000_001, 9_000_006))
        lists = slurm.lists()
        await lists.read()
        assert slurm.states() == (await lists.read()).states
        assert [None, [9_000_001, 9_000_002, 9_000_003, 9_000_004], [9_000_005]] == slurm.asked

    asyncio.run(main())


def test_a_crash_that_forgets_some_ids_has_few_asked_for_again() -> None:
    async def main() -> None:
        slurm = Slurm(*range(9_000_001, 9_000_011))
        slurm.next_id = 9_000_011
        lists = slurm.lists()
        slurm.counts = False
        await lists.read()
        await lists.read()
        slurm.asked.clear()
        del slurm.jobs["9000010"]
        slurm.next_id = 9_000_010

        assert slurm.states() == (await lists.read()).states
        assert sum(len(ids or ()) for ids in slurm.asked) <= DOUBTFUL + 10

    asyncio.run(main())


def test_what_is_settled_is_asked_for_in_turn_until_it_is_gone() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 9))
        lists = slurm.lists()
        await lists.read()
        slurm.asked.clear()
        del slurm.jobs["5"]
        settled = [JobId(number) for number in range(1, 8)]

        first, _, third = [await lists.read(settled=settled) for _ in range(3)]

        assert JobId(5) in first.states
        assert slurm.states() == third.states
        assert [[1, 2, 8], [3, 4, 8], [5, 6, 8]] == slurm.asked

    asyncio.run(main())


def test_a_list_that_twice_takes_too_long_is_not_asked_for_again() -> None:
    """As where very many jobs have ended a moment ago, which Slurm does not count."""

    async def main() -> None:
        slurm = Slurm(1, 2)
        lists = slurm.lists()
        slurm.fails = True
        for _ in range(2):
            with pytest.raises(LostReply):
                await lists.read()
        slurm.fails = False

        assert slurm.states() == (await lists.read()).states
        assert [None, None, [1, 2]] == slurm.asked
        await lists.read()
        assert slurm.asked[-1] is None  # they are few

    asyncio.run(main())


def test_a_slurm_that_does_not_tell_its_next_id_lists_all_at_once() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 11))
        slurm.knows_numbering = False

        assert slurm.states() == (await slurm.lists().read()).states
        assert [None] == slurm.asked

    asyncio.run(main())


def test_nothing_new_is_missed_because_a_reading_failed() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 6))
        lists = slurm.lists()
        await lists.read()
        slurm.jobs["9"], slurm.next_id, slurm.fails = "PENDING", 10, True
        with pytest.raises(LostReply):
            await lists.read()
        slurm.fails = False

        assert slurm.states() == (await lists.read()).states

    asyncio.run(main())


def test_ids_that_another_slurmctld_assigns_again_are_asked_for() -> None:
    """It saved its state some jobs ago; what they were numbers others now."""

    async def main() -> None:
        slurm = Slurm(*range(11, 21))
        lists = slurm.lists()
        before = await lists.read()
        slurm.jobs["5"], slurm.next_id = "PENDING", 22
        assert JobId(5) not in (await lists.read()).states

        assert slurm.states() == (await lists.read_of_another(before)).states

    asyncio.run(main())


def test_new_ones_are_found_though_ids_have_started_again() -> None:
    async def main() -> None:
        slurm = Slurm(*range(9000, 9010))
        lists = slurm.lists()
        await lists.read()
        slurm.jobs["1"], slurm.next_id = "PENDING", 3

        assert slurm.states() == (await lists.read()).states

    asyncio.run(main())


def test_a_pods_job_is_found_though_ids_have_started_again() -> None:
    async def main() -> None:
        slurm = Slurm(*range(1, 6), 9000)
        slurm.next_id = 7

        assert slurm.states() == (await slurm.lists(9000).read()).states

    asyncio.run(main())


@pytest.mark.parametrize(
    ("job_id", "numbers"),
    [("7", (7,)), ("7_3", (7,)), ("7_[4-9%2]", (7,)), ("21+1", (20, 21)), ("odd", (0,))],
)
def test_the_ids_that_tell_of_a_job(job_id: str, numbers: tuple[int, ...]) -> None:
    assert numbers == listing.numbers(job_id)


_MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from(["{}", "{}_[0-3]", "{}_1"])),
        st.tuples(st.just("submit two"), st.just("")),
        st.tuples(st.just("skip"), st.just("")),
        st.tuples(st.just("start"), st.integers(0, 30)),
        st.tuples(st.just("forget"), st.integers(0, 30)),
        st.tuples(st.just("settle"), st.integers(0, 30)),
        st.tuples(st.just("start again"), st.just("")),
    ),
    max_size=30,
)


def _move(slurm: Slurm, settled: set[int], what: str, which: Any) -> None:
    there = list(slurm.jobs)
    if what == "submit":
        slurm.jobs[which.format(slurm.next_id)] = "PENDING"
        slurm.next_id += 1
    elif what == "submit two":
        first = slurm.next_id
        slurm.jobs |= {f"{first}+0": "PENDING", f"{first + 1}+1": "PENDING"}
        slurm.next_id += 2
    elif what == "skip":
        slurm.next_id += 3
    elif what == "start again":
        slurm.jobs, slurm.next_id = {}, 1
    elif not there:
        pass
    elif what == "start":
        slurm.jobs[there[which % len(there)]] = "RUNNING"
    elif what == "forget":
        del slurm.jobs[there[which % len(there)]]
    else:
        settled.add(JobId(listing.numbers(there[which % len(there)])[0]))


@given(_MOVES)
def test_whatever_happens_what_matters_is_listed_as_it_is(moves: list[tuple[str, Any]]) -> None:
    async def main() -> None:
        slurm, settled = Slurm(*range(1, 6)), set[int]()
        lists = slurm.lists()
        for what, which in moves:
            _move(slurm, settled, what, which)
            found = (await lists.read(settled=settled)).states
            truth = slurm.states()
            settled &= found.keys()
            of_interest = (found.keys() | truth.keys()) - settled
            assert {id_: truth.get(id_) for id_ in of_interest} == {
                id_: found.get(id_) for id_ in of_interest
            }
        for _ in list(settled):
            settled &= (await lists.read(settled=settled)).states.keys()
        assert slurm.states().keys() == (await lists.read(settled=settled)).states.keys()

    asyncio.run(main())
