"""The events in a job's life, found by comparing two readings of it."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from slurmexporter.readings.job import Job, elapsed_s
from slurmexporter.readings.states import LOST


class Submission(Struct, frozen=True):
    """A job was submitted."""

    job: Job


class Start(Struct, frozen=True):
    """A job started, for the first time or again."""

    job: Job
    waited_s: float


class Requeue(Struct, frozen=True):
    """A job that had started is pending again."""

    job: Job


class End(Struct, frozen=True):
    """A job ended."""

    job: Job
    state: str
    ran_s: float


JobEvent: TypeAlias = Submission | Start | Requeue | End


def events_between(old: Job | None, new: Job, *, is_new_base: bool) -> Iterator[JobEvent]:
    """Yield the events between two readings of a job, in order, including a start that was never read.

    Args:
        old: The earlier reading; None if the job, or the task of an array, is read for the first time.
        new: The later reading, of the same identity.
        is_new_base: Whether this job or array was unknown before.
    """
    if is_new_base:
        yield Submission(new)
    if old is not None and old.restarts < new.restarts:
        yield Requeue(new)
    has_new_start = new.has_started and (old is None or old.start_s != new.start_s)
    if has_new_start:
        yield Start(new, max(0.0, new.start_s - new.waits_since_s))
    if new.has_ended and (old is None or not old.has_ended or has_new_start):
        yield End(new, new.state, elapsed_s(new, new.end_s))


def loss(old: Job, ran_s: float) -> Iterator[JobEvent]:
    """Yield the end of a job that slurmctld no longer knows, and that had run for so long."""
    if not old.has_ended:
        yield End(old, LOST, ran_s)
