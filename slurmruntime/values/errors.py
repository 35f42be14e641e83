"""The errors of both peers, so that callers can retry without knowing the peer."""

from typing import Final, TypeAlias

from slurmclient.errors import SlurmError


class CallError(Exception):
    """A call to the API server, or one of our own steps, failed; `str()` is fit for an operator.

    Base of `slurmruntime.kube.errors.KubeError`; errors of Slurm are slurm-client's.
    """

    outcome: str = "error"
    """One word, for metrics."""

    transient: bool = False
    """The failure passes by itself: the peer was away or busy, or the object had changed in between.
    Retry and log one line; any other failure needs a person."""


PeerError: TypeAlias = CallError | SlurmError
"""What a call to Slurm or to the API server raises; `except` takes `PEER_ERRORS`."""

PEER_ERRORS: Final = (CallError, SlurmError)
