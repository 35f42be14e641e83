"""Slurm's error numbers that callers tell apart, and how errors of calls are worded for our users.

The errors themselves, and what an answer's status and number mean, are slurm-client's: `slurmclient.errors`.
Numbers: slurm/slurm_errno.h.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from slurmclient.api.operations import OPERATIONS
from slurmclient.errors import STANDBY, Declined, SlurmError, TooOld

GENERIC: Final = -1
AUTHENTICATION: Final = 1007
SCRIPT_MISSING: Final = 2009
NODES_BUSY: Final = 2016
INVALID_JOB_ID: Final = 2017
INVALID_NODE_NAME: Final = 2018
ALREADY_DONE: Final = 2021
IN_STANDBY: Final = tuple(sorted(STANDBY))
"""A backup slurmctld that is not in charge."""
NO_RESERVATION: Final = 2053
JOB_NOT_PENDING: Final = 2073
JOB_FINISHED: Final = 2084
NODE_EXISTS: Final = 2168
NOT_CONVERTED: Final = 9202
"""slurmrestd cannot read a field as the type that it has for it."""

_PING: Final = "slurm_get_ping"
_LABELS: Final = {_PING: "ping", "openapi": "openapi", "token": "token.read"}
"""Requests that precede a call and may fail in its place."""


@contextmanager
def worded(label: str) -> Iterator[None]:
    """Let the errors of a block name the call (`job.submit`), and say the message of Slurm alone."""
    try:
        yield
    except SlurmError as error:
        operation = error.operation
        if operation in _LABELS or operation in OPERATIONS:
            problem = error.problems[0] if error.problems else None
            words = (problem.error or problem.description) if problem else error.words
            if isinstance(error, TooOld) and operation == _PING:
                words = f"{words}: slurm-bridge needs Slurm 25.05 or newer"
            error.reword(_LABELS.get(operation, label), words)
        raise


def outcome(error: SlurmError) -> str:
    """Return the label of an error in our metrics, where all that Slurm declines is `rejected`."""
    return Declined.outcome if isinstance(error, Declined) else error.outcome
