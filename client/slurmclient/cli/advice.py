"""Advice."""

from typing import Final

from slurmclient import errors

ADVICE: Final = {
    errors.Unauthorized: "Get a new token ('scontrol token') and put it into SLURM_JWT, or into the file of --token-file.",
    errors.Forbidden: "Ask as a user who may: --as-user with root's token, or another token.",
    errors.NotFound: "See what there is with 'slurmc list'. A job is forgotten MinJobAge seconds after its end: 'slurmc list history'.",
    errors.Conflict: "See its state with 'slurmc get'.",
    errors.LostReply: "It may have been done all the same: look before you ask again.",
    errors.Unavailable: "Check the address in SLURMRESTD_URL (--url), and that slurmrestd and slurmctld run.",
    errors.TooOld: "A newer Slurm is needed, or another --api.",
    errors.Malformed: "Is slurmrestd at this address? Something else answered.",
}
"""What to do about an error, the most special class first."""
