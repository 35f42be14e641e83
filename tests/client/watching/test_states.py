"""The list of all states: which belong together, and that an equal list is not read twice."""

import asyncio

import pytest

from slurmclient import Malformed
from slurmclient.watching import states as slurm_states
from slurmclient.watching.in_turn import in_turn
from slurmclient.watching.listing import by_id
from slurmclient.watching.states import State, States, StatesAnswer
from slurmclient.wire import reading


def states(*ids: str) -> list[State]:
    return [State(job_id=id_, state=("PENDING",)) for id_ in ids]


def test_tasks_of_arrays_and_components_of_heterogeneous_jobs_are_grouped() -> None:
    listed = States(b"", tuple(states("7", "8_1", "9", "8_2", "12+0", "13+1", "8_[3-5]")))
    assert {
        7: {"PENDING"},
        8: {"1:PENDING", "2:PENDING", "[3-5]:PENDING"},
        9: {"PENDING"},
        12: {"PENDING", "1:PENDING"},
    } == by_id(listed, arrays=True)


def test_an_array_that_is_listed_beside_its_tasks_is_one_record() -> None:
    listed = States(b"", tuple(states("8_1", "8")))
    assert {8: {"PENDING", "1:PENDING"}} == by_id(listed, arrays=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7", (7, 0)),
        ("20+0", (20, 0)),
        ("21+1", (20, 1)),
        ("7_3", None),
        ("7_*", None),
        ("", None),
        ("7+", (7, 0)),
        ("7+x", None),
    ],
)
def test_ids_of_the_state_list_are_jobs_or_het_components_but_no_array_tasks(
    text: str, found: tuple[int, int] | None
) -> None:
    assert found == slurm_states.component(text)


def answer(jobs: bytes) -> StatesAnswer:
    return reading.decode(b'{"jobs":%s,"meta":%d}' % (jobs, len(jobs)), StatesAnswer)


def test_the_same_list_is_the_same_object_whatever_surrounds_it() -> None:
    first = slurm_states.decode(answer(b'[{"job_id":"7","state":["PENDING"]}]'), None)
    assert [State("7", ("PENDING",))] == list(first.listed)
    assert first is slurm_states.decode(answer(b'[{"job_id":"7","state":["PENDING"]}]'), first)
    later = slurm_states.decode(answer(b'[{"job_id":"7","state":["RUNNING"]}]'), first)
    assert [State("7", ("RUNNING",))] == list(later.listed)


@pytest.mark.parametrize("jobs", [b"null", b'{"job_id":"7"}', b'[{"state":[]}]', b'["7"]'])
def test_what_is_no_list_of_states_is_never_taken_for_an_empty_one(jobs: bytes) -> None:
    with pytest.raises(Malformed, match="expected a list of states"):
        slurm_states.decode(answer(jobs), None)


async def test_a_few_are_done_at_a_time_and_the_first_failure_ends_them() -> None:
    begun: list[int] = []
    most = 0
    running = 0

    async def do(number: int) -> int:
        nonlocal most, running
        begun.append(number)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        if number == 90:
            raise KeyError(number)
        return -number

    assert {n: -n for n in range(9)} == await in_turn(range(9), do, at_a_time=4)
    assert (list(range(9)), 4) == (begun, most)
    with pytest.raises(KeyError, match="90"):
        await in_turn(range(89, 999), do, at_a_time=2)
    assert len(begun) < 20
