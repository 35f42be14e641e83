"""What has happened to a job between two readings of it."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from slurmexporter.readings.job import Job, elapsed_s
from slurmexporter.readings.states import LOST


class Submitted(Struct, frozen=True):
    """A job has come."""

    job: Job


class Started(Struct, frozen=True):
    """A job has started, for the first time or again."""

    job: Job
    waited_s: float


class Requeued(Struct, frozen=True):
    """A job that had started waits again."""

    job: Job


class Ended(Struct, frozen=True):
    """A job has ended."""

    job: Job
    state: str
    ran_s: float


Happening: TypeAlias = Submitted | Started | Requeued | Ended


def happened(old: Job | None, new: Job, *, is_new_base: bool) -> Iterator[Happening]:
    """Yield what lies between two readings of a job, in order; what came and went unseen included.

    Args:
        old: The earlier reading; None for a job, or a task of an array, read for the first time.
        new: The later reading, of the same identity.
        is_new_base: Whether nothing of this job or array was known before.
    """
    if is_new_base:
        yield Submitted(new)
    if old is not None and old.restarts < new.restarts:
        yield Requeued(new)
    has_new_start = new.has_started and (old is None or old.start_s != new.start_s)
    if has_new_start:
        yield Started(new, max(0.0, new.start_s - new.waits_since_s))
    if new.has_ended and (old is None or not old.has_ended or has_new_start):
        yield Ended(new, new.state, elapsed_s(new, new.end_s))


def lost(old: Job, ran_s: float) -> Iterator[Happening]:
    """Yield the end of a job that slurmctld does not know any more.

    Args:
        old: Its last reading.
        ran_s: How long it had run by then.
    """
    if not old.has_ended:
        yield Ended(old, LOST, ran_s)
