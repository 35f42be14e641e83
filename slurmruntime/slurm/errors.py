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

slurm-client classifies answers (`slurmclient.errors`); this module translates its classes into the
bridge's. To the bridge an error is a rejection in more cases: an unknown partition or account, a
missing permission and a job in the wrong state are reported to the requester, and only a job or
node that does not exist is `NotFound`. Numbers: slurm/slurm_errno.h.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import slurmclient
from slurmclient.errors import STANDBY
from slurmclient.errors import classify as understood
from slurmruntime.values.errors import PeerError

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


_KINDS: Final = (
    (slurmclient.LostReply, LostReply),
    (slurmclient.Unavailable, Unavailable),
    (slurmclient.Unauthorized, Unauthorized),
    (slurmclient.Rejected, Rejected),
    (slurmclient.Malformed, Malformed),
    (slurmclient.TooOld, TooOld),
)
"""slurm-client's errors and ours; the first that fits counts."""

_LABELS: Final = {"slurm_get_ping": "ping", "openapi": "openapi", "token": "token.read"}
"""Requests that precede a call and may fail in its place."""


def classify(status: int | None, error_number: int | None) -> type[SlurmError]:
    """Return the error class for a response other than plain success.

    Args:
        status: HTTP status; None if slurmctld itself responded.
        error_number: Of the first error in the response; None if it has none, or is not Slurm's.
    """
    return _kind(understood("", status, error_number), status, error_number)


def translated(label: str, error: slurmclient.SlurmError) -> SlurmError:
    """Return the bridge's error for one of slurm-client's.

    Args:
        label: The call: `job.submit`.
        error: What slurm-client raised.
    """
    problem = error.problems[0] if error.problems else None
    words = (problem.error or problem.description) if problem else error.words
    kind = _kind(type(error), error.status, error.error_number)
    if kind is TooOld and error.operation == "slurm_get_ping":
        words = f"{words}: slurm-bridge needs Slurm 25.05 or newer"
    ours = kind(
        _LABELS.get(error.operation, label),
        words,
        status=error.status,
        error_number=error.error_number,
    )
    if isinstance(ours, Rejected) and isinstance(error, slurmclient.Rejected):
        ours.job_id = error.job_id
    return ours


@contextmanager
def translating(label: str) -> Iterator[None]:
    """Translate the errors of slurm-client in a block."""
    try:
        yield
    except slurmclient.SlurmError as error:
        raise translated(label, error) from error


def _kind(
    kind: type[slurmclient.SlurmError], status: int | None, error_number: int | None
) -> type[SlurmError]:
    is_missing = status == HTTPStatus.NOT_FOUND or error_number == INVALID_JOB_ID
    if issubclass(kind, slurmclient.NotFound) and is_missing:
        return NotFound
    return next(ours for theirs, ours in _KINDS if issubclass(kind, theirs))
