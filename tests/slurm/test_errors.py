"""HTTP status and Slurm error number → our errors; each pair was seen on a real slurmrestd."""

import pytest

from slurmruntime.slurm import errors
from slurmruntime.slurm.errors import (
    LostReply,
    Malformed,
    NotFound,
    Rejected,
    SlurmError,
    Unauthorized,
    Unavailable,
)


@pytest.mark.parametrize(
    ("status", "number", "expected"),
    [
        pytest.param(401, None, Unauthorized, id="no token"),
        pytest.param(511, 1007, Unauthorized, id="expired token"),
        pytest.param(None, 1007, Unauthorized, id="slurmctld refuses the token itself"),
        pytest.param(502, 1800, Unavailable, id="slurmctld is down, submit"),
        pytest.param(502, 1801, LostReply, id="broken while sending"),
        pytest.param(504, 5004, LostReply, id="slurmctld hangs, submit"),
        pytest.param(503, None, LostReply, id="a proxy has no server"),
        pytest.param(500, -1, LostReply, id="slurmctld is down, read"),
        pytest.param(500, 1000, LostReply, id="slurmctld is down, update"),
        pytest.param(500, 104, LostReply, id="slurmctld dies while it is asked"),
        pytest.param(500, 1025, LostReply, id="slurmctld shuts down"),
        pytest.param(500, None, LostReply, id="slurmrestd's own text"),
        pytest.param(403, 1, LostReply, id="slurmctld is down, cancel"),
        pytest.param(None, 2027, LostReply, id="the backup controller answers"),
        pytest.param(404, 2017, NotFound, id="unknown job"),
        pytest.param(404, 2018, NotFound, id="unknown something"),
        pytest.param(500, 9207, Rejected, id="unknown flag"),
        pytest.param(500, 2189, Rejected, id="a script for an external job"),
        pytest.param(500, 2019, Rejected, id="a script for an external job, 25.11"),
        pytest.param(500, 2009, Rejected, id="a heterogeneous job without a script, 25.11"),
        pytest.param(422, 9000, Rejected, id="a sluid in a path, 25.11"),
        pytest.param(500, 9202, Rejected, id="a group by name, 25.05"),
        pytest.param(422, 2000, Rejected, id="unknown partition"),
        pytest.param(422, 2021, Rejected, id="already done"),
        pytest.param(400, None, Malformed, id="text"),
        pytest.param(200, None, Malformed, id="no errors to speak of"),
    ],
)
def test_status_and_number_tell_errors_apart(
    status: int | None, number: int | None, expected: type[SlurmError]
) -> None:
    assert expected is errors.classify(status, number)


def test_a_message_says_what_was_asked_and_slurms_words_and_numbers() -> None:
    error = Rejected("job.submit", "Invalid account", status=422, error_number=2045)

    assert "job.submit: Invalid account (Slurm error 2045, HTTP 422)" == str(error)


def test_a_lost_reply_is_unavailability_for_whoever_does_not_care() -> None:
    assert issubclass(LostReply, Unavailable)
