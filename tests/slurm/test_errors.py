"""How the errors of slurm-client are worded for our users and labelled in our metrics."""

import pytest

from slurmclient.errors import (
    Conflict,
    Declined,
    Forbidden,
    LostReply,
    NameNotFound,
    Problem,
    SlurmError,
    TargetNotFound,
    TooOld,
    Unauthorized,
)
from slurmruntime.slurm import errors
from slurmruntime.values.errors import PEER_ERRORS


def _worded(error: SlurmError) -> str:
    with pytest.raises(type(error)) as raised, errors.worded("job.submit"):
        raise error
    assert error is raised.value
    return str(error)


def test_an_error_names_our_call_and_has_the_message_of_slurm_alone() -> None:
    problem = Problem(error_number=2045, error="Invalid account", description="of submit")
    words = "Invalid account: of submit"
    error = Declined("slurm_post_job_submit", words, status=422, problems=(problem,))

    assert "job.submit: Invalid account (Slurm error 2045, HTTP 422)" == _worded(error)


def test_a_request_that_precedes_a_call_keeps_its_own_name() -> None:
    assert "token.read: it is empty" == _worded(Unauthorized("token", "it is empty"))
    old = TooOld("slurm_get_ping", "no version that we speak")
    assert "ping: no version that we speak: slurm-bridge needs Slurm 25.05 or newer" == _worded(old)


def test_an_error_of_our_own_is_left_as_it_is() -> None:
    error = LostReply("job.states", "cut off")

    assert "job.states: cut off" == _worded(error)


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (Declined, "rejected"),
        (NameNotFound, "rejected"),
        (Forbidden, "rejected"),
        (Conflict, "rejected"),
        (TargetNotFound, "not_found"),
        (Unauthorized, "unauthorized"),
        (LostReply, "lost_reply"),
    ],
)
def test_all_that_slurm_declines_has_one_label(kind: type[SlurmError], label: str) -> None:
    assert label == errors.outcome(kind("job.submit", "no"))


def test_whoever_catches_the_errors_of_both_peers_catches_those_of_slurm() -> None:
    assert issubclass(LostReply, PEER_ERRORS)
