"""Requests to a fake Slurm, its refusals, and its numbers."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct


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


WORDS: Final = {
    1800: "Unable to contact slurm controller (connect failure)",
    2000: "Invalid partition name specified",
    2002: "Access/permission denied",
    2010: "Invalid user id",
    2016: "Requested nodes are busy",
    2017: "Invalid job id specified",
    2018: "Invalid node name specified",
    2021: "Job/step already completing or completed",
    2084: "Job has already finished",
    2168: "Node already exists in the node table",
    2180: "Invalid node state transition",
}
"""Slurm's texts of the errors that the fake knows (slurm_errno.h)."""


class Refused(Exception):
    """Slurm refuses a request."""

    def __init__(self, number: int, *, status: int = 422) -> None:
        """Take a number of `WORDS`, and the HTTP status that slurmrestd sends with it."""
        super().__init__(number)
        self.number = number
        self.status = status


JsonBody: TypeAlias = dict[str, Any]
"""What slurmrestd takes and answers."""


class FakeRequest(Struct, frozen=True):
    """A request: the parameters of its path and query, its body, its user."""

    parts: dict[str, str]
    """The parameters of its path, by name."""
    body: JsonBody
    query: Mapping[str, list[str]]
    user: str


def number(value: float | None) -> dict[str, object]:
    """Return an optional number as slurmrestd writes it; None stands for infinity."""
    return {"set": value is not None, "infinite": value is None, "number": int(value or 0)}
