"""Classifying errors by HTTP status and Slurm's number (slurm_errno.h)."""

import pytest

from slurmclient.errors import (
    Conflict,
    Forbidden,
    LostReply,
    Malformed,
    NotFound,
    Rejected,
    SlurmError,
    Unauthorized,
    Unavailable,
    classify,
)


@pytest.mark.parametrize(
    ("status", "number", "kind"),
    [
        pytest.param(401, None, Unauthorized, id="no token"),
        pytest.param(511, 1007, Unauthorized, id="an expired token"),
        pytest.param(502, 1800, Unavailable, id="slurmrestd cannot connect to slurmctld"),
        pytest.param(504, 5004, LostReply, id="slurmctld hangs: it may have taken the submit"),
        pytest.param(500, -1, LostReply, id="slurmctld is down"),
        pytest.param(500, 104, LostReply, id="slurmctld dies while it is asked"),
        pytest.param(500, 32, LostReply, id="slurmctld dies while it is written to"),
        pytest.param(403, 1, LostReply, id="slurmctld is down, a cancel"),
        pytest.param(502, 7000, LostReply, id="slurmdbd is down"),
        pytest.param(200, 2027, LostReply, id="slurmctld is on standby"),
        pytest.param(200, 2131, LostReply, id="slurmctld is on standby, and names another host"),
        pytest.param(404, 2017, NotFound, id="no such job"),
        pytest.param(422, 2000, NotFound, id="no such partition"),
        pytest.param(422, 2010, Forbidden, id="not this user's"),
        pytest.param(422, 2021, Conflict, id="it has ended"),
        pytest.param(422, 2168, Conflict, id="the node exists"),
        pytest.param(422, 2014, Rejected, id="more than there is"),
        pytest.param(404, None, Malformed, id="another program's page"),
    ],
)
def test_status_and_number_say_what_an_answer_is(
    status: int, number: int | None, kind: type[SlurmError]
) -> None:
    assert kind is classify("slurm_post_job", status, number)


def test_a_missing_node_is_an_error_without_a_number() -> None:
    assert classify("slurm_get_node", 200, 0) is NotFound
    assert classify("slurm_get_nodes", 200, 0) is Rejected
