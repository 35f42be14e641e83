"""Requests."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

WORDS: Final = {
    1007: "Protocol authentication error",
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
    9000: "Query empty or not RFC7320 compliant",
}


class Refused(Exception):
    """Slurm says no."""

    def __init__(self, number: int, *, status: int = 422) -> None:
        super().__init__(number)
        self.number = number
        self.status = status


class Asked(Struct, frozen=True):
    """A request, taken apart."""

    parts: dict[str, str]
    """The parameters of its path."""
    body: dict[str, Any]
    query: Mapping[str, list[str]]
    user: str


def number(value: float | None) -> dict[str, object]:
    """Write a number as slurmrestd does."""
    return {"set": value is not None, "infinite": value is None, "number": int(value or 0)}
