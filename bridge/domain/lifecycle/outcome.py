"""A pod's outcome in the terms of Slurm's accounting.

`sacct` tells the truth: a pod that exited and is deleted afterwards (a TTL, a finished Job's
cleanup) ended as it exited; a pod that was deleted while it ran was cancelled, whatever its
containers made of the SIGTERM.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle.actions import Cause, Outcome
from bridge.domain.model.pods import Container, ContainerState, Phase, Pod
from slurmruntime.values import names, numbers

NO_EXIT_CODE = 255
"""For a pod that failed as a whole (Evicted, DeadlineExceeded, NodeLost …), or without a failed
container."""

_STOPPED_BY = (15, 9)
"""SIGTERM, and SIGKILL at the end of the grace period."""
_LETS_GO_WITHIN = timedelta(seconds=60)
"""How long after its containers' end a kubelet may take to delete a pod for good: a second or two,
more if the API server was away."""

_LOST_REASONS = frozenset({"Unknown", "ContainerStatusUnknown"})
REJECTED = "UnexpectedAdmissionError"
"""A failed pod's reason: its kubelet could not give it the devices that the node has."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_MAX_SIGNAL = 64  # SIGRTMAX; Slurm gives 127 and 253 meanings of their own


def of(pod: Pod) -> Outcome:
    """Return a terminal pod's outcome: that of the container that failed first.

    Init containers are included. Sidecars are terminated once the others are done, so theirs counts
    only if nothing else failed. Within the same second, the order is the spec's. A pod with a reason
    of its own was ended by its kubelet, whose SIGKILL its containers report then.
    """
    if pod.phase is Phase.SUCCEEDED:
        return Outcome()
    ended = [c for c in pod.containers if c.state is ContainerState.TERMINATED]
    failed = [c for c in ended if c.exit_code or c.signal]
    if pod.reason or not failed:
        return Outcome(exit_code=NO_EXIT_CODE)
    first = min(failed, key=lambda c: (c.restartable_init, c.finished_at or _LONG_AGO))
    if first.reason == "OOMKilled":
        return Outcome(out_of_memory=True)
    if number := _signal(first):
        return Outcome(signal=number)
    code = first.exit_code or 0
    return Outcome(exit_code=code if code in range(1, 256) else NO_EXIT_CODE)


def lost_with_node(pod: Pod) -> bool:
    """Check whether its machine took the pod down: a reboot, or a runtime that forgot it.

    The kubelet then finds containers that it started and no runtime runs (`Unknown` from containerd,
    `ContainerStatusUnknown` from the kubelet itself). Restarted ones are no end. It also admits its
    pods again, and rejects those whose devices are not back yet; of their containers it says
    nothing at first. A pod that is rejected before it ran looks the same, and is as little to blame.
    """
    if pod.phase is not Phase.FAILED:
        return False
    if pod.reason:
        return pod.reason == REJECTED
    ended = [c for c in pod.containers if c.state is ContainerState.TERMINATED]
    return any(container.reason in _LOST_REASONS for container in ended)


def in_words(outcome: Outcome) -> str:
    """Describe an outcome for people."""
    if outcome.out_of_memory:
        return "out of memory"
    if outcome.timed_out:
        return "time limit"
    if outcome.signal:
        return f"signal {outcome.signal}"
    return f"exit code {outcome.exit_code}"


def encode(outcome: Outcome) -> str:
    """Write a failure: `exit 3`, `signal 9`, `oom`, `timeout`."""
    if outcome.timed_out:
        return "timeout"
    if outcome.out_of_memory:
        return "oom"
    return f"signal {outcome.signal}" if outcome.signal else f"exit {outcome.exit_code}"


def decode(text: str) -> Outcome:
    """Read a failure; one that cannot be read still counts as a failure."""
    kind, _, number = text.partition(" ")
    count = numbers.integer(number) or 0
    if kind == "timeout":
        return Outcome(timed_out=True)
    if kind == "oom":
        return Outcome(out_of_memory=True)
    if kind == "signal" and count in range(1, _MAX_SIGNAL + 1):
        return Outcome(signal=count)
    return Outcome(exit_code=count if count in range(1, 256) else NO_EXIT_CODE)


def is_failure(outcome: Outcome) -> bool:
    """Check whether it is anything but success."""
    return outcome != Outcome()


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst outcome of a gang's members.

    The order: time-out, out of memory, signals, the highest exit code; success only if all
    succeeded.
    """
    return max(
        outcomes,
        key=lambda o: (o.timed_out, o.out_of_memory, o.signal > 0, o.exit_code, o.signal),
        default=Outcome(),
    )


def ended_by_itself(pod: Pod) -> bool:
    """Check whether a terminal pod ended before it was deleted.

    Kubernetes and the kubelet report whole seconds; within the same second the deletion came first,
    since many programs exit at once on SIGTERM, but hardly anything deletes a pod within a second
    of its end before we have seen that.
    """
    deleted_at = pod.deletion_requested_at
    if deleted_at is None:
        return evicted_for(pod) is None  # else its deadline ended it before our DELETE came
    ended = [c for c in pod.containers if c.state is ContainerState.TERMINATED]
    before = [c for c in ended if c.finished_at is not None and c.finished_at < deleted_at]
    was_stopped = pod.deletion_grace_s == 0 and any(_was_stopped(c, deleted_at) for c in before)
    return bool(ended) and before == ended and not was_stopped


def evicted_for(pod: Pod) -> Cause | None:
    """Return the cause of our eviction if it blamed the pod, else None."""
    cause = cause_of_eviction(pod)
    return None if cause is None or cause.is_disruption else cause


def cause_of_eviction(pod: Pod) -> Cause | None:
    """Return why we evicted the pod, as our own condition says; None if we did not."""
    condition = pod.condition(names.ALLOCATED_CONDITION)
    if condition is None or condition.status == "True":
        return None
    return next((cause for cause in Cause if cause.value == condition.reason), None)


def _was_stopped(container: Container, deleted_at: datetime) -> bool:
    """Check whether a kubelet stopped it, as far as can be known without having watched.

    In that case `deleted_at` is the kubelet's last DELETE.
    """
    if container.finished_at is None or container.reason == "OOMKilled":
        return False
    is_recent = deleted_at - container.finished_at <= _LETS_GO_WITHIN
    return is_recent and _signal(container) in _STOPPED_BY


def _signal(container: Container) -> int:
    """Return the signal that ended it, 0 if none: runtimes report signal n as exit code 128 + n."""
    number = container.signal or (container.exit_code or 0) - 128
    return number if number in range(1, _MAX_SIGNAL + 1) else 0
