"""What can go wrong between a program and Slurm. Told apart by HTTP status and Slurm's error number, never by words.

SlurmError
├── Unavailable          nobody answered, or the answer says that Slurm cannot answer: nothing was done, try later
│   └── LostReply        … but what was asked may have been done all the same: look before asking again
├── Rejected             Slurm said no, in its own words
│   ├── Unauthorized     … to the token: missing, expired, signed by another key
│   ├── Forbidden        … to this user
│   ├── NotFound         … because there is no such object (a job that Slurm has forgotten looks the same)
│   └── Conflict         … because of the object's state: it exists, has ended, is busy
├── Malformed            the answer is not what the API promises: a proxy's page, another program
└── TooOld               this Slurm does not have what was asked; raised before anything is sent

HTTP statuses alone mislead: an expired token is 511, a DELETE while slurmctld is down is 403, an unknown flag is 500
although the job was submitted, an unknown node is 200 with `errors`. Numbers: slurm/slurm_errno.h.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

COMMUNICATION: Final = (range(1000, 1026), range(1800, 1900), range(5000, 5100))
"""Between daemons; most of them may come after slurmctld has got the message."""

DATABASE: Final = frozenset({7000, 7008})
"""slurmdbd, or its database, cannot be reached."""

TOKEN: Final = frozenset({1007, 9008, *range(6000, 6012)})
"""Authentication: expired, of another cluster, for another user."""

NO_SUCH: Final = frozenset({2000, 2017, 2018, 2045, 2053, 2066, 7104})
"""Partition, job, node, account, reservation, QOS, cluster."""

FORBIDDEN: Final = frozenset({2002, 2010, 2052})
"""Access denied; the user may not do this; a reservation of others."""

CONFLICT: Final = frozenset(
    {
        2016,
        2020,
        2021,
        2024,
        2042,
        2055,
        2058,
        2073,
        2075,
        2077,
        2082,
        *range(2083, 2089),
        2104,
        2168,
        2180,
        2181,
        7001,
    }
)
"""Busy, already done, held, not pending, in use, suspended, exists, started, finished, not finished, jobs run."""

SINGULAR: Final = frozenset(
    {"slurm_get_node", "slurm_get_partition", "slurm_get_reservation", "slurm_get_job"}
)
"""Here an error without a number means that there is no such object."""


class Problem(Struct, frozen=True):
    """One of an answer's `errors`: `error` is Slurm's text for the number, `description` is slurmrestd's."""

    description: str = ""
    error_number: int = 0
    error: str = ""
    source: str = ""


class Remark(Struct, frozen=True):
    """One of an answer's `warnings`; some of them are refusals."""

    description: str = ""
    source: str = ""


class SlurmError(Exception):
    """One call to Slurm that did not do what was asked."""

    outcome = "error"
    """What metrics call it."""

    def __init__(
        self,
        operation: str,
        words: str,
        *,
        status: int | None = None,
        problems: Sequence[Problem] = (),
        warnings: Sequence[Remark] = (),
    ) -> None:
        """Keep the facts.

        Args:
            operation: What was asked: `slurm_post_job_submit`.
            words: What went wrong, in Slurm's words where it has any.
            status: HTTP status, if an answer came back.
            problems: The answer's `errors`.
            warnings: The answer's `warnings`.
        """
        self.operation = operation
        self.words = words
        self.status = status
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        number = self.error_number
        facts = [f"Slurm error {number}" if number else "", f"HTTP {status}" if status else ""]
        source = ", ".join(filter(None, facts))
        super().__init__(f"{operation}: {words}" + (f" ({source})" if source else ""))

    @property
    def error_number(self) -> int | None:
        """Slurm's number for the first problem; None if there is none."""
        return self.problems[0].error_number if self.problems else None


class Unavailable(SlurmError):
    """Slurm cannot answer now, and has not done what was asked."""

    outcome = "unavailable"


class LostReply(Unavailable):
    """Slurm did not answer, but may have done what was asked."""

    outcome = "lost_reply"


class Rejected(SlurmError):
    """Slurm understood and refused."""

    outcome = "rejected"
    job_id: int | None = None
    """Set if the answer carries a job id all the same: then the job *was* submitted."""


class Unauthorized(Rejected):
    """Slurm does not accept the token, or there is none to send."""

    outcome = "unauthorized"


class Forbidden(Rejected):
    """The token's user may not do this."""

    outcome = "forbidden"


class NotFound(Rejected):
    """There is no such object (any more)."""

    outcome = "not_found"


class Conflict(Rejected):
    """The object's state does not allow it."""

    outcome = "conflict"


class Malformed(SlurmError):
    """The answer is not what the API promises."""

    outcome = "malformed"


class TooOld(SlurmError):
    """The server does not speak a version of the API that has what was asked."""

    outcome = "too_old"


def classify(operation: str, status: int | None, number: int | None) -> type[SlurmError]:
    """Say which error an answer other than plain success is.

    Args:
        operation: What was asked.
        status: HTTP status; None for one object among several of an answer.
        number: Of the first error in the answer; None if it has none, or is not Slurm's at all.
    """
    match status, number:
        case 401 | 511, _:
            return Unauthorized
        case _, int() if number in TOKEN:
            return Unauthorized
        case _, 1800:
            return Unavailable  # slurmrestd could not even connect to slurmctld
        case _, int() if number in DATABASE:
            return LostReply
        case (502 | 503 | 504, _) | (500, -1 | None) | (403, 1) | (_, 2027):
            return LostReply  # slurmctld is silent, or on standby
        case _, int() if any(number in numbers for numbers in COMMUNICATION):
            return LostReply
        case (_, 0) if operation in SINGULAR:
            return NotFound
        case 404, int():
            return NotFound
        case _, int():
            return _refusal(number)
        case _:
            return Malformed


def _refusal(number: int) -> type[Rejected]:
    if number in NO_SUCH:
        return NotFound
    if number in FORBIDDEN:
        return Forbidden
    return Conflict if number in CONFLICT else Rejected
