"""Faults that a fake Slurm can apply to requests."""

from enum import Enum
from typing import Final


class Fault(Enum):
    """What happens to a request."""

    LOST_REPLY = "carried out, then the connection breaks"
    LOST_REQUEST = "the connection breaks, nothing is carried out"
    LATE = "the connection breaks, `deliver` carries it out later"
    DOWN = "slurmctld cannot be reached"


LOST_REPLY: Final = Fault.LOST_REPLY
LOST_REQUEST: Final = Fault.LOST_REQUEST
LATE: Final = Fault.LATE
DOWN: Final = Fault.DOWN
