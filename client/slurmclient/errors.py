"""Errors of the client, classified by HTTP status and Slurm error number, never by message text.

SlurmError
├── Unavailable          no answer, or Slurm is down; nothing was done, try again later
│   └── LostReply        no answer, but the request may have been carried out; check before repeating
│       └── InStandby    the slurmctld that answered is a backup that is not in charge
├── Rejected             Slurm refused the request
│   ├── Unauthorized     the token is missing, expired or signed with another key
│   ├── NotFound         no such object
│   │   ├── TargetNotFound   the object that was asked for (a job purged from slurmctld looks the same)
│   │   └── NameNotFound     another one that the request names; it is `Declined`, too
│   └── Declined         Slurm understood the request and declined it
│       ├── Forbidden    the user lacks permission
│       └── Conflict     the object's state does not allow it: it exists, has ended, is busy
├── Malformed            the answer is not one of Slurm's: a proxy's error page, another program
└── TooOld               this version of Slurm lacks the feature

HTTP statuses alone mislead: an expired token is 511, a DELETE while slurmctld is down is 403, an
unknown flag is 500 although the job was submitted, an unknown node is 200 with `errors`. The
numbers are those of slurm/slurm_errno.h.
"""

import errno
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from msgspec import Struct

COMMUNICATION: Final = (range(1000, 1026), range(1800, 1900), range(5000, 5100))
"""Failures between daemons; most can occur after slurmctld has received the message."""

SYSTEM: Final = frozenset(
    {
        *(errno.EPIPE, errno.ENETDOWN, errno.ENETUNREACH, errno.ECONNABORTED, errno.ECONNRESET),
        *(errno.ENOTCONN, errno.ESHUTDOWN, errno.ETIMEDOUT, errno.ECONNREFUSED),
        *(errno.EHOSTDOWN, errno.EHOSTUNREACH),
    }
)
"""Error numbers of the operating system, which slurmrestd passes on if its connection to slurmctld fails."""

DATABASE: Final = frozenset({7000, 7008})
"""slurmdbd or its database cannot be reached."""

TOKEN: Final = frozenset({1007, 9008, *range(6000, 6012)})
"""Authentication failures: an expired token, one of another cluster, one of another user."""

STANDBY: Final = frozenset({2027, 2131})
"""A backup slurmctld that is not in charge; the second names another host to ask."""

NO_SUCH: Final = frozenset({2000, 2017, 2018, 2045, 2053, 2066, 7104})
"""No such partition, job, node, account, reservation, QOS or cluster."""

FORBIDDEN: Final = frozenset({2002, 2010, 2052})
"""Access denied, operation not permitted to this user, reservation of other users."""

CONFLICT: Final = frozenset(
    {
        *(2016, 2020, 2021, 2024, 2042, 2055, 2058, 2073, 2075, 2077, 2082),
        *range(2083, 2089),
        *(2104, 2168, 2180, 2181, 7001),
    }
)
"""The object's state forbids it.

It is busy, held, not pending, in use, suspended, exists already, has started or has finished.
"""

SINGULAR: Final = frozenset(
    {"slurm_get_node", "slurm_get_partition", "slurm_get_reservation", "slurm_get_job"}
)
"""Operations where an error without a number means that there is no such object."""


class Problem(Struct, frozen=True):
    """One of an answer's `errors` (OpenAPI: `openapi_error`).

    `error` is Slurm's text for the number, `description` adds slurmrestd's details.
    """

    description: str = ""
    error_number: int = 0
    error: str = ""
    source: str = ""


class Remark(Struct, frozen=True):
    """One of an answer's `warnings` (OpenAPI: `openapi_warning`); some report ignored fields."""

    description: str = ""
    source: str = ""


class SlurmError(Exception):
    """A call to Slurm that failed."""

    outcome = "error"
    """The label that `on_call` receives, suitable for metrics."""
    transient = False
    """The failure passes by itself: Slurm was away or busy. Any other needs a person."""

    def __init__(
        self,
        operation: str,
        words: str,
        *,
        status: int | None = None,
        error_number: int | None = None,
        problems: Sequence[Problem] = (),
        warnings: Sequence[Remark] = (),
    ) -> None:
        """Build the message from the facts.

        Args:
            words: What went wrong, in Slurm's words if it gave any.
            status: The HTTP status; None if there was no answer.
            error_number: Slurm's number, if not that of the first problem.
        """
        self.status = status
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        if error_number is None and self.problems:
            error_number = self.problems[0].error_number
        self.error_number = error_number
        """Slurm's number of the first problem (slurm_errno.h); None if there is none."""
        self.reword(operation, words)

    def reword(self, operation: str, words: str) -> None:
        """Say it in the caller's terms: another name of the operation, shorter words; the facts stay."""
        self.operation = operation
        self.words = words
        facts = [
            f"Slurm error {self.error_number}" if self.error_number else "",
            f"HTTP {self.status}" if self.status else "",
        ]
        source = ", ".join(filter(None, facts))
        self.args = (f"{operation}: {words}" + (f" ({source})" if source else ""),)


class Unavailable(SlurmError):
    """Slurm cannot answer now; the request was not carried out."""

    outcome = "unavailable"
    transient = True


class LostReply(Unavailable):
    """Slurm did not answer; the request may have been carried out."""

    outcome = "lost_reply"


class InStandby(LostReply):
    """The slurmctld that answered is a backup that waits to take over."""


class Rejected(SlurmError):
    """Slurm refused the request."""

    outcome = "rejected"
    job_id: int | None = None
    """The job's id if the answer carries one in spite of the error: the job *was* submitted."""


class Unauthorized(Rejected):
    """Slurm does not accept the token, or there is no token to send."""

    outcome = "unauthorized"


class NotFound(Rejected):
    """There is no such object, or no longer."""

    outcome = "not_found"


class TargetNotFound(NotFound):
    """The object that was asked for does not exist, or no longer."""


class Declined(Rejected):
    """Slurm understood the request and declined it; `words` is a message for whoever made it."""


class NameNotFound(NotFound, Declined):
    """The request names an object that does not exist: a partition, an account, a node."""


class Forbidden(Declined):
    """The user lacks permission."""

    outcome = "forbidden"


class Conflict(Declined):
    """The object's state does not allow the request."""

    outcome = "conflict"


class Malformed(SlurmError):
    """The answer is not one that the API defines."""

    outcome = "malformed"


class TooOld(SlurmError):
    """No API version that the server speaks has the operation or parameter."""

    outcome = "too_old"


def classify(operation: str, status: int | None, number: int | None) -> type[SlurmError]:
    """Return the class of error for an answer that is not a plain success.

    Args:
        status: The HTTP status; None for one object among several in an answer.
        number: The number of the answer's first error; None if it has no error, or is not Slurm's.
    """
    match status, number:
        case 401 | 511, _:
            return Unauthorized
        case _, int() if number in TOKEN:
            return Unauthorized
        case _, 1800:
            return Unavailable  # slurmrestd could not connect to slurmctld at all
        case _, int() if number in DATABASE | STANDBY:
            return LostReply
        case (502 | 503 | 504, _) | (500, -1 | None) | (403, 1):
            return LostReply  # slurmctld does not answer
        case _, int() if any(number in numbers for numbers in (SYSTEM, *COMMUNICATION)):
            return LostReply
        case (_, 0) if operation in SINGULAR:
            return TargetNotFound if status == HTTPStatus.NOT_FOUND else NameNotFound
        case (404, int()) | (_, 2017):
            return TargetNotFound
        case _, int():
            return _refusal(number)
        case _:
            return Malformed


def _refusal(number: int) -> type[Declined]:
    if number in NO_SUCH:
        return NameNotFound
    if number in FORBIDDEN:
        return Forbidden
    return Conflict if number in CONFLICT else Declined
