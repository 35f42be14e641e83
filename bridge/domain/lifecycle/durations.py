"""How long the steps of a pod's life take, measured as each one ends."""

import enum
from collections.abc import Iterator
from datetime import datetime

from bridge.domain.lifecycle.actions import Action, Assign, Complete
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod


class Step(enum.StrEnum):
    """A step with both ends known to the process that performs the second."""

    QUEUE = "queue"
    """From the placeholder's submit until Slurm started it."""
    PIN = "pin"
    """From Slurm's start until the pod was pinned and its gate removed."""
    ROOM = "room"
    """The part of `pin` that pods still terminating on the node took, if that was reported."""
    COMPLETE = "complete"
    """From the end of the last container until it was reported to Slurm."""


def done(
    pod: Pod, action: Action, job: SlurmJob | None, now: datetime
) -> Iterator[tuple[Step, float]]:
    """Yield the steps that this action ended, in seconds.

    Slurm and the kubelet report whole seconds.
    """
    match action:
        case Assign() if job is not None and job.started_at is not None:
            if job.submitted_at is not None:
                yield Step.QUEUE, _seconds(job.submitted_at, job.started_at)
            yield Step.PIN, _seconds(job.started_at, now)
            if action.waited is not None:
                yield Step.ROOM, action.waited.total_seconds()
        case Complete():
            ends = [c.finished_at for c in pod.containers if c.finished_at is not None]
            if ends:
                yield Step.COMPLETE, _seconds(max(ends), now)
        case _:
            pass


def _seconds(since: datetime, until: datetime) -> float:
    return max((until - since).total_seconds(), 0.0)
