"""Classifying errors by HTTP status and Slurm's number (slurm_errno.h); each pair was seen on a real slurmrestd."""

import pytest

from slurmclient.errors import (
    Conflict,
    Declined,
    Forbidden,
    LostReply,
    Malformed,
    NameNotFound,
    NotFound,
    Problem,
    Rejected,
    SlurmError,
    TargetNotFound,
    TooOld,
    Unauthorized,
    Unavailable,
    classify,
)


@pytest.mark.parametrize(
    ("status", "number", "kind"),
    [
        pytest.param(401, None, Unauthorized, id="no token"),
        pytest.param(511, 1007, Unauthorized, id="an expired token"),
        pytest.param(None, 1007, Unauthorized, id="slurmctld refuses the token itself"),
        pytest.param(502, 1800, Unavailable, id="slurmrestd cannot connect to slurmctld"),
        pytest.param(502, 1801, LostReply, id="broken while sending"),
        pytest.param(503, None, LostReply, id="a proxy has no server"),
        pytest.param(500, 1000, LostReply, id="slurmctld is down, update"),
        pytest.param(500, 1025, LostReply, id="slurmctld shuts down"),
        pytest.param(500, None, LostReply, id="slurmrestd's own text"),
        pytest.param(504, 5004, LostReply, id="slurmctld hangs: it may have taken the submit"),
        pytest.param(500, -1, LostReply, id="slurmctld is down"),
        pytest.param(500, 104, LostReply, id="slurmctld dies while it is asked"),
        pytest.param(500, 32, LostReply, id="slurmctld dies while it is written to"),
        pytest.param(403, 1, LostReply, id="slurmctld is down, a cancel"),
        pytest.param(502, 7000, LostReply, id="slurmdbd is down"),
        pytest.param(200, 2027, LostReply, id="slurmctld is on standby"),
        pytest.param(None, 2027, LostReply, id="the backup controller answers"),
        pytest.param(200, 2131, LostReply, id="slurmctld is on standby, and names another host"),
        pytest.param(404, 2017, TargetNotFound, id="no such job"),
        pytest.param(200, 2017, TargetNotFound, id="no such job, of several"),
        pytest.param(404, 2018, TargetNotFound, id="no such path of Slurm's"),
        pytest.param(422, 2000, NameNotFound, id="no such partition"),
        pytest.param(500, 2018, NameNotFound, id="no such node in a job's list"),
        pytest.param(422, 2010, Forbidden, id="not this user's"),
        pytest.param(422, 2021, Conflict, id="it has ended"),
        pytest.param(422, 2168, Conflict, id="the node exists"),
        pytest.param(422, 2014, Declined, id="more than there is"),
        pytest.param(500, 9207, Declined, id="unknown flag"),
        pytest.param(500, 2189, Declined, id="a script for an external job"),
        pytest.param(500, 2019, Declined, id="a script for an external job, 25.11"),
        pytest.param(500, 2009, Declined, id="a heterogeneous job without a script, 25.11"),
        pytest.param(422, 9000, Declined, id="a sluid in a path, 25.11"),
        pytest.param(500, 9202, Declined, id="a group by name, 25.05"),
        pytest.param(404, None, Malformed, id="another program's page"),
        pytest.param(400, None, Malformed, id="text"),
        pytest.param(200, None, Malformed, id="no errors to speak of"),
    ],
)
def test_status_and_number_say_what_an_answer_is(
    status: int | None, number: int | None, kind: type[SlurmError]
) -> None:
    assert kind is classify("slurm_post_job", status, number)


def test_a_missing_node_is_an_error_without_a_number() -> None:
    assert classify("slurm_get_node", 200, 0) is NameNotFound
    assert classify("slurm_get_node", 404, 0) is TargetNotFound
    assert classify("slurm_get_nodes", 200, 0) is Declined


def test_what_slurm_declines_is_neither_a_missing_object_nor_a_refused_token() -> None:
    declined = {Forbidden, Conflict, NameNotFound}

    assert declined == {kind for kind in _leaves(Rejected) if issubclass(kind, Declined)}
    assert {TargetNotFound, NameNotFound} == set(_leaves(NotFound))
    assert {Unauthorized, TargetNotFound} == set(_leaves(Rejected)) - declined


def test_only_unavailability_passes_by_itself() -> None:
    assert issubclass(LostReply, Unavailable)
    assert {kind for kind in _leaves(SlurmError) if kind.transient} == set(_leaves(Unavailable))


@pytest.mark.parametrize("kind", [Declined, TooOld])
def test_a_message_says_what_was_asked_and_slurms_words_and_numbers(kind: type[SlurmError]) -> None:
    error = kind("job.submit", "Invalid account", status=422, error_number=2045)

    assert "job.submit: Invalid account (Slurm error 2045, HTTP 422)" == str(error)
    error.reword("job.update", "no such account")
    assert "job.update: no such account (Slurm error 2045, HTTP 422)" == str(error)


def test_the_number_is_that_of_the_first_problem_unless_another_is_given() -> None:
    problems = (Problem(error_number=2045), Problem(error_number=2066))

    assert 2045 == Declined("job.submit", "no", problems=problems).error_number
    assert 2066 == Declined("job.submit", "no", problems=problems, error_number=2066).error_number
    assert Declined("job.submit", "no").error_number is None


def _leaves(kind: type[SlurmError]) -> list[type[SlurmError]]:
    """Return the classes under this one that have none under them."""
    return [leaf for sub in kind.__subclasses__() for leaf in (_leaves(sub) or [sub])]
