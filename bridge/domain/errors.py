"""What errors of the two peers have in common, so that whoever retries need not know which peer it was."""


class PeerError(Exception):
    """A call to Slurm or to the API server that did not do what was asked; `str()` is fit for an operator.

    Base of `bridge.kube.errors.KubeError` and `bridge.slurm.errors.SlurmError`.
    """

    outcome: str = "error"
    """One word, for metrics."""

    transient: bool = False
    """It passes by itself: the peer was away, busy, or had changed the object meanwhile. Try again and say so in one line;
    anything else needs somebody's eye."""
