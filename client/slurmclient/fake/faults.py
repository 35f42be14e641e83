"""Faults."""

from enum import Enum
from typing import Final


class Fault(Enum):
    """What becomes of a request."""

    LOST_REPLY = "it is done, and the connection breaks"
    LOST_REQUEST = "the connection breaks, and nothing is done"
    LATE = "the connection breaks, and it is done when `deliver` is called"
    DOWN = "slurmctld cannot be reached"


LOST_REPLY: Final = Fault.LOST_REPLY


LOST_REQUEST: Final = Fault.LOST_REQUEST


LATE: Final = Fault.LATE


DOWN: Final = Fault.DOWN
