"""The common base of both peers' errors, so that callers can retry without knowing the peer."""


class PeerError(Exception):
    """A call to Slurm or to the API server failed; `str()` is fit for an operator.

    Base of `slurmruntime.kube.errors.KubeError` and `slurmruntime.slurm.errors.SlurmError`.
    """

    outcome: str = "error"
    """One word, for metrics."""

    transient: bool = False
    """The failure passes by itself: the peer was away or busy, or the object had changed in between.
    Retry and log one line; any other failure needs a person."""
