"""What a user can do about an error."""

from collections.abc import Mapping
from typing import Final

from slurmclient import errors
from slurmclient.errors import SlurmError

_ADVICE: Final[Mapping[type[SlurmError], str]] = {
    errors.Unauthorized: "Get a new token ('scontrol token') and put it into SLURM_JWT or the file of"
    " --token-file.",
    errors.Forbidden: "Use the token of a user who has permission, or --as-user with root's token.",
    errors.NotFound: "See what exists with 'slurmc list'. slurmctld purges a job MinJobAge seconds"
    " after its end: 'slurmc list history' shows older ones.",
    errors.Conflict: "See its state with 'slurmc get'.",
    errors.LostReply: "It may have been carried out: check before you repeat it.",
    errors.Unavailable: "Check the address in SLURMRESTD_URL (--url), and that slurmrestd and"
    " slurmctld are running.",
    errors.TooOld: "Use a newer Slurm, or another --api.",
    errors.Malformed: "Check that the address is slurmrestd's: another program seems to answer.",
}
"""By class of error; subclasses come before their bases."""


def advice(error: SlurmError) -> str:
    """Return what to do about an error; "" if its message is enough."""
    return next((words for kind, words in _ADVICE.items() if isinstance(error, kind)), "")
