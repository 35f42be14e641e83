"""The interface of a reviewer: one kind of object, its methods and their result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bridge.domain.admission.review import Verdict
from webhook import wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """The verdict on one object."""

    name: str
    """For the log: namespace and name."""
    verdict: Verdict


ReviewMethod = Callable[[wire.Review], ReviewResult]
"""One method of a reviewer."""


class Reviewer(Protocol):
    """Reviews new objects of one kind.

    Both methods raise `wire.MalformedObjectError` if the object is not of that kind.
    """

    @property
    def created(self) -> str:
        """The kind, as in `wire.Review.created`."""

    @property
    def kind(self) -> str:
        """The kind, for people."""

    @property
    def called(self) -> str:
        """The log field that holds an object's name."""

    def mutate(self, review: wire.Review) -> ReviewResult:
        """Return the changes to the object, or why it is refused already."""

    def validate(self, review: wire.Review) -> ReviewResult:
        """Return every fault of the object."""
