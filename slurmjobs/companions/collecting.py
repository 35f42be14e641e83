"""Decide which collector to create: the pod that copies a job's results to claims once the job has ended.

Pure and level-triggered, as `due` is for the log. A collector's name contains its number, so a lost reply to a create makes no
second one, and failed tries stay readable. A collector reports by its exit code and its termination message.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bridge.domain.model.batch import BatchJob
from slurmjobs.companions import due, volume
from slurmjobs.companions.due import Account
from slurmjobs.lifecycle.situation import Collection, CopyState
from slurmjobs.objects.results import JobResult
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import JobOutputs

MOST_TRIES: Final = 3
WITHIN: Final = timedelta(days=1)
"""Time from the job's end for all tries; then a collector that still copies is stopped."""
BETWEEN: Final = timedelta(seconds=30)
"""Pause before the second try; the one before the third is twice as long."""
LONGEST_NAME: Final = 253 - len("-collect-N")
NO_RETRY: Final = 1
"""A collector's exit code if another try would not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """A collector as the API server has it."""

    run: str
    number: int
    """The number of the try, from 1."""
    is_over: bool = False
    exit_code: int | None = None
    """None until it ends, and if its container never ran."""
    message: str = ""
    """Its termination message, or why it does not start."""
    ended_at: datetime | None = None
    """Set by the kubelet when it ends."""
    account: Account | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectFacts:
    """Everything that the decision depends on."""

    job: SlurmJobObject
    collectors: Sequence[Collector]
    now: datetime
    refusal: str = ""
    """Why the last create was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStep:
    """What to do, and how the copying is going."""

    collection: Collection
    make: int = 0
    """The number of the collector to create; 0 for none."""
    remove: tuple[Collector, ...] = ()
    """Collectors of an earlier run, whose names are needed."""
    retry_after: timedelta | None = None


def is_due(job: SlurmJobObject) -> bool:
    """Check whether the job's results must be copied now."""
    results = job.status.results
    is_collecting = results is not None and results.phase == "Collecting"
    return is_collecting and job.metadata.deletion_timestamp is None


def decide(facts: CollectFacts) -> CollectStep:
    """Return the next step for a SlurmJob whose results must be copied."""
    run = run_of(facts.job)
    outdated = tuple(collector for collector in facts.collectors if collector.run != run)
    attempts = sorted(
        (collector for collector in facts.collectors if collector.run == run),
        key=lambda collector: collector.number,
    )
    if any(collector.exit_code == 0 for collector in attempts):
        return _finished(CopyState.DONE, "", outdated)
    if faults := unreachable(facts.job):
        return _finished(CopyState.GIVEN_UP, "; ".join(faults), outdated)
    last = attempts[-1] if attempts else None
    if last is not None and last.is_over and last.exit_code == NO_RETRY:
        return _finished(CopyState.GIVEN_UP, last.message or "copying failed", outdated)
    if last is not None and last.is_over and last.number >= MOST_TRIES:
        text = f"{MOST_TRIES} tries failed; the last one: {last.message or 'it was killed'}"
        return _finished(CopyState.GIVEN_UP, text, outdated)
    if _time_left(facts) <= timedelta(0):
        waits_for = (last.message if last else "") or facts.refusal or "no node took the pod"
        text = f"not copied within a day of the job's end: {waits_for}"
        return _finished(CopyState.GIVEN_UP, text, outdated)
    if last is not None and not last.is_over:
        text = "; ".join(filter(None, [last.message, *map(_failed_try, attempts[:-1])]))
        return _finished(CopyState.NOT_YET, text, outdated)
    number = last.number + 1 if last else 1
    text = "; ".join(filter(None, [facts.refusal, *map(_failed_try, attempts)]))
    pause = _pause(last, facts.now)
    return CollectStep(
        collection=Collection(state=CopyState.NOT_YET, text=text),
        make=0 if outdated or pause else number,
        remove=outdated,
        retry_after=pause,
    )


def _failed_try(failed: Collector) -> str:
    return f"try {failed.number} failed: {failed.message or 'it was killed'}"


def _pause(last: Collector | None, now: datetime) -> timedelta | None:
    """Return the rest of the pause before the next try; None if it is over."""
    if last is None or last.ended_at is None:
        return None
    left = BETWEEN * last.number - (now - last.ended_at)
    return left if left > timedelta(0) else None


def _finished(state: CopyState, text: str, outdated: tuple[Collector, ...]) -> CollectStep:
    return CollectStep(collection=Collection(state=state, text=text), remove=outdated)


def _time_left(facts: CollectFacts) -> timedelta:
    ended_at = facts.job.status.end_time
    return WITHIN if ended_at is None else WITHIN - (facts.now - ended_at)


def seconds_left(facts: CollectFacts) -> int:
    """Return the time limit of a collector created now, at least 1."""
    return max(int(_time_left(facts).total_seconds()), 1)


def run_of(job: SlurmJobObject) -> str:
    """Return the id of the job's present run: a requeued job keeps its job id."""
    return f"{job.status.job_id}-{job.status.restarts}"


def name_of(job: SlurmJobObject, number: int) -> str:
    """Return a collector's name."""
    return f"{job.metadata.name}-collect-{number}"


def source(job: SlurmJobObject, result: JobResult) -> str | None:
    """Return a result's path on the output's volume; None if it is not on that volume."""
    if job.spec.output is None:
        return None
    outputs = job.status.outputs or JobOutputs()
    path = _expand_patterns(job, result.source) or outputs.stdout
    absolute = path if path.startswith("/") else f"{outputs.directory}/{path}"
    return volume.within(absolute, job.spec.output.cluster_path)


def target(job: SlurmJobObject, result: JobResult) -> str:
    """Return the folder on its claim that a result is copied to; "" is the volume's root."""
    return _expand_patterns(job, result.to.path)


def _expand_patterns(job: SlurmJobObject, path: str) -> str:
    values = {"%j": str(job.status.job_id or 0), "%x": job.metadata.name, "%u": job.status.user}
    return re.sub("%[jxu]", lambda match: values[match[0]], path)


def unreachable(job: SlurmJobObject) -> list[str]:
    """Return a message for each result that is not below `output.clusterPath`."""
    output = job.spec.output
    below = output.cluster_path if output else "spec.output"
    directory = job.status.outputs.directory if job.status.outputs else ""
    return [
        f"spec.results[{index}].from: {result.source or 'its standard output'} is not below {below}"
        f" (the job's working directory is {directory or 'unknown'})"
        for index, result in enumerate(job.spec.results)
        if source(job, result) is None
    ]


def account_of(
    job: SlurmJobObject, jobs: Sequence[BatchJob], collectors: Sequence[Collector]
) -> Account | None:
    """Return the job's user according to Slurm, the status, or an earlier collector; None if it was never known."""
    if account := due.account_of(job, jobs):
        return account
    uid, gid = job.status.uid, job.status.gid
    if uid is not None and gid is not None:
        return Account(uid=uid, gid=gid)
    return next(
        (collector.account for collector in collectors if collector.account is not None), None
    )
