"""Which states belong together, and what tells a job from another one with its id."""

from slurmclient.watching.identity import Identity, State, by_base, is_alive
from slurmclient.wire import reading


def states(*ids: str) -> list[State]:
    return [State(job_id=id_, state=("PENDING",)) for id_ in ids]


def test_tasks_of_arrays_and_components_of_heterogeneous_jobs_are_grouped() -> None:
    found = by_base(states("7", "8_1", "9", "8_2", "12+0", "13+1", "8_[3-5]"))
    assert {
        "7": ["7"],
        "8": ["8_1", "8_2", "8_[3-5]"],
        "9": ["9"],
        "12": ["12+0", "13+1"],
    } == {base: [one.job_id for one in group] for base, group in found.items()}


def test_an_array_that_is_listed_beside_its_tasks_is_one_group() -> None:
    assert {"8": ("8", "8_1")} == {
        base: tuple(one.job_id for one in group)
        for base, group in by_base(states("8_1", "8")).items()
    }


def test_a_job_is_alive_until_it_has_ended() -> None:
    assert is_alive(
        [State(job_id="7", state=("COMPLETED",)), State(job_id="8", state=("RUNNING",))]
    )
    assert not is_alive([State(job_id="7", state=("COMPLETED", "COMPLETING"))])


def test_a_job_is_identified_by_its_sluid_or_else_by_its_submission() -> None:
    new = reading.decode(
        b'{"job_id": 9, "array_job_id": {"set": true, "number": 8}, '
        b'"step_id": {"sluid": "s1"}, "submit_time": 100}',
        Identity,
    )
    assert ("8", "s1") == (new.base, new.name)
    old = reading.decode(b'{"job_id": 9, "submit_time": 100}', Identity)
    assert ("9", old.submit_time) == (old.base, old.name)
