"""How a pod ended, in the terms Slurm's accounting knows."""

from bridge.domain.actions import Outcome
from bridge.domain.pods import Pod


def of(pod: Pod) -> Outcome:
    """Say how a terminal pod ended: by its first failed container in spec order, init containers included."""
    raise NotImplementedError
