"""What tells a job from another one with its id."""

from slurmclient.watching.identity import Identity, is_alive
from slurmclient.watching.states import State
from slurmclient.wire import reading


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
