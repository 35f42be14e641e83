"""Errors of Slurm, classified by HTTP status and Slurm error number, never by message text.

SlurmError
├── Unavailable          no response, or one that says Slurm is not available: retry later
│   └── LostReply        … and the request may have been carried out: read before retrying
│       └── InStandby    … as the slurmctld that answered is not in charge
├── Unauthorized         the token is missing, expired or not Slurm's
├── NotFound             no such job or node (a purged job looks the same)
├── Rejected             Slurm rejected the request, with a message
├── Malformed            the response violates its own schema
└── TooOld               the server offers none of the API versions we support

HTTP statuses alone are misleading (each of these is tested against the real slurmrestd): an expired
token is 511, a DELETE while slurmctld is down is 403, an unknown flag is 500 although the job was
submitted, an unknown node is 200 with `errors`. Numbers: slurm/slurm_errno.h.
"""

from http import HTTPStatus
from typing import Final

from bridge.domain.errors import PeerError

GENERIC: Final = -1
AUTHENTICATION: Final = 1007
NODES_BUSY: Final = 2016
INVALID_JOB_ID: Final = 2017
INVALID_NODE_NAME: Final = 2018
ALREADY_DONE: Final = 2021
IN_STANDBY: Final = (2027, 2131)
"""A backup slurmctld that is not in charge; the second names another host to ask."""
JOB_NOT_PENDING: Final = 2073
JOB_FINISHED: Final = 2084
NODE_EXISTS: Final = 2168
NO_CONNECTION: Final = 1800
"""slurmrestd could not even connect to slurmctld."""
COMMUNICATION: Final = (range(1000, 1026), range(1800, 1900), range(5000, 5100))
"""Communication between daemons; most can occur after slurmctld has received the message."""


class SlurmError(PeerError):
    """A call to Slurm failed."""

    outcome = "error"
    """Its label in metrics."""

    def __init__(
        self,
        operation: str,
        words: str,
        *,
        status: int | None = None,
        error_number: int | None = None,
    ) -> None:
        """Store the facts and compose the message.

        Args:
            operation: The call: `job.submit`.
            words: What went wrong; Slurm's own message if it has one.
            status: HTTP status, if there was an HTTP response.
            error_number: Slurm's error number, if the response had one.
        """
        facts = [
            f"Slurm error {error_number}" if error_number is not None else "",
            f"HTTP {status}" if status else "",
        ]
        source = ", ".join(filter(None, facts))
        super().__init__(f"{operation}: {words}" + (f" ({source})" if source else ""))
        self.operation = operation
        self.words = words
        self.status = status
        self.error_number = error_number


class Unavailable(SlurmError):
    """Slurm is not available and has not carried out the request."""

    outcome = "unavailable"
    transient = True


class LostReply(Unavailable):
    """Slurm did not respond, but may have carried out the request."""

    outcome = "lost_reply"


class InStandby(LostReply):
    """The slurmctld that answered is a backup that waits to take over."""


class Unauthorized(SlurmError):
    """Slurm does not accept our token."""

    outcome = "unauthorized"


class NotFound(SlurmError):
    """The job or node does not exist (any more)."""

    outcome = "not_found"


class Rejected(SlurmError):
    """Slurm understood the request and rejected it; `words` is a message for the requester."""

    outcome = "rejected"
    job_id: int | None = None
    """Set if the response carries a job id nevertheless: then the job *was* submitted."""


class Malformed(SlurmError):
    """The response violates the API's schema: a proxy's page, a bug, another program."""

    outcome = "malformed"


class TooOld(SlurmError):
    """The server supports no API version that has what we need."""

    outcome = "too_old"


def classify(status: int | None, error_number: int | None) -> type[SlurmError]:
    """Return the error class for a response other than plain success.

    Args:
        status: HTTP status; None if slurmctld itself responded.
        error_number: Of the first error in the response; None if it has none, or is not Slurm's.
    """
    if status in (401, 511) or error_number == AUTHENTICATION:
        return Unauthorized
    if error_number == NO_CONNECTION:
        return Unavailable
    if _is_without_answer(status, error_number):
        return LostReply
    if error_number is None:
        return Malformed
    if status == HTTPStatus.NOT_FOUND or error_number == INVALID_JOB_ID:
        return NotFound
    return Rejected


def _is_without_answer(status: int | None, error_number: int | None) -> bool:
    """Check whether slurmctld did not respond, or is on standby."""
    if status in (502, 503, 504) or error_number in IN_STANDBY:
        return True
    if (status, error_number) in ((500, GENERIC), (500, None), (403, 1)):
        return True
    return any(error_number in numbers for numbers in COMMUNICATION)
