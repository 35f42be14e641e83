"""What can go wrong between us and Slurm. Told apart by HTTP status and Slurm error number, never by message text.

SlurmError
├── Unavailable          no answer, or an answer that says Slurm cannot answer: try again later
│   └── LostReply        … and what was asked may have been done all the same: look before asking again
├── Unauthorized         the token is missing, expired or not Slurm's
├── NotFound             no such job or node (a purged job looks the same)
├── Rejected             Slurm said no, in its own words
├── Malformed            the answer breaks its own schema
└── TooOld               the server offers none of the API versions we speak

HTTP statuses alone mislead (each of these is tested against the real slurmrestd): an expired token is 511, a DELETE while
slurmctld is down is 403, an unknown flag is 500 although the job was submitted, an unknown node is 200 with `errors`.
Numbers: slurm/slurm_errno.h.
"""

from typing import Final

from bridge.domain.errors import PeerError

GENERIC: Final = -1
AUTHENTICATION: Final = 1007
NODES_BUSY: Final = 2016
INVALID_JOB_ID: Final = 2017
INVALID_NODE_NAME: Final = 2018
ALREADY_DONE: Final = 2021
JOB_NOT_PENDING: Final = 2073
JOB_FINISHED: Final = 2084
NODE_EXISTS: Final = 2168
COMMUNICATION: Final = (range(1000, 1024), range(1800, 1900), range(5000, 5100))
"""Between daemons; most of them may come after slurmctld has got the message."""


class SlurmError(PeerError):
    """One call to Slurm that did not do what was asked."""

    outcome = "error"
    """What metrics call it."""

    def __init__(
        self,
        operation: str,
        words: str,
        *,
        status: int | None = None,
        error_number: int | None = None,
    ) -> None:
        """Keep the facts.

        Args:
            operation: What was asked: `job.submit`.
            words: What went wrong, in Slurm's words where it has any.
            status: HTTP status, if an answer came back over HTTP.
            error_number: Slurm's error number, if the answer had one.
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
    """Slurm cannot answer now, and has not done what was asked."""

    outcome = "unavailable"
    transient = True


class LostReply(Unavailable):
    """Slurm did not answer, but may have done what was asked."""

    outcome = "lost_reply"


class Unauthorized(SlurmError):
    """Slurm does not accept our token."""

    outcome = "unauthorized"


class NotFound(SlurmError):
    """There is no such job or node (any more)."""

    outcome = "not_found"


class Rejected(SlurmError):
    """Slurm understood and refused; `words` are for whoever asked."""

    outcome = "rejected"
    job_id: int | None = None
    """Set if the answer carries a job id all the same: then the job *was* submitted."""


class Malformed(SlurmError):
    """The answer is not what the API promises: a proxy's page, a bug, another program."""

    outcome = "malformed"


class TooOld(SlurmError):
    """The server does not speak a version of the API that has what we need."""

    outcome = "too_old"


def classify(status: int | None, error_number: int | None) -> type[SlurmError]:
    """Say which error an answer other than plain success is.

    Args:
        status: HTTP status; None if slurmctld answered itself.
        error_number: Of the first error in the answer; None if it has none, or is not Slurm's at all.
    """
    match status, error_number:
        case (401 | 511, _) | (_, 1007):
            return Unauthorized
        case _, 1800:
            return Unavailable  # slurmrestd could not even connect to slurmctld
        case (502 | 503 | 504, _) | (500, -1 | None) | (403, 1) | (_, 2027):
            return LostReply  # slurmctld is silent, or on standby
        case _, int(number) if any(number in numbers for numbers in COMMUNICATION):
            return LostReply
        case (404, int()) | (_, 2017):
            return NotFound
        case _, int():
            return Rejected
        case _:
            return Malformed
