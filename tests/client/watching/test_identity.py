"""What tells a job from another one with its id."""

from slurmclient.watching.identity import Identity, is_alive
from slurmclient.wire import reading


def test_a_job_is_alive_until_it_has_ended() -> None:
    assert is_alive(["COMPLETED", "RUNNING"])
    assert is_alive(["3:COMPLETED", "4:RUNNING"])
    assert not is_alive(["COMPLETED", "COMPLETING", "3:COMPLETED"])


def test_a_job_is_identified_by_its_sluid_or_else_by_its_submission() -> None:
    new = reading.decode(
        b'{"job_id": 9, "array_job_id": {"set": true, "number": 8}, '
        b'"step_id": {"sluid": "s1"}, "submit_time": 100}',
        Identity,
    )
    assert (9, "s1") == (new.record, new.name)
    old = reading.decode(b'{"job_id": 9, "submit_time": 100}', Identity)
    assert (9, old.submit_time) == (old.record, old.name)


def test_a_component_is_listed_with_its_leader() -> None:
    component = reading.decode(b'{"job_id": 21, "het_job_id": 20}', Identity)
    assert 20 == component.record
