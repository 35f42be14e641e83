"""What the webhook can review: one kind of object at a time, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bridge.domain.admission.review import Verdict
from webhook import wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """An object, and what was decided."""

    name: str
    """For the log: namespace and name."""
    verdict: Verdict


Look = Callable[[wire.Review], Reviewed]
"""One of a reviewer's two answers."""


class Reviewer(Protocol):
    """Reviews new objects of one kind.

    Both raise `wire.MalformedObjectError` if the object is not of that kind.
    """

    @property
    def created(self) -> str:
        """The kind, as in `wire.Review.created`."""

    @property
    def kind(self) -> str:
        """The kind, for people."""

    @property
    def called(self) -> str:
        """What an object is called in the log."""

    def mutate(self, review: wire.Review) -> Reviewed:
        """Return what is written on the object; if it is refused already, why."""

    def validate(self, review: wire.Review) -> Reviewed:
        """Return what is wrong with the object."""
