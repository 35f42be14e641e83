"""Which collector is due: the pod that copies a job's results to claims once the job has ended.

Pure and level-triggered, as `due` is for the log. A collector's number stands in its name, so a create whose reply is lost makes no
second one, and a try that failed stays to be read. What it says is its exit code and its termination message.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bridge.domain.model.batch import BatchJob
from slurmjobs.companions import volume
from slurmjobs.companions.due import Account
from slurmjobs.lifecycle.situation import Collected, Collection
from slurmjobs.objects.results import JobResult
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import JobOutputs

MOST_TRIES: Final = 3
WITHIN: Final = timedelta(days=1)
"""From the job's end; then nothing is tried any more, and a collector that still copies is stopped."""
BETWEEN: Final = timedelta(seconds=30)
"""Before the second try; before the third one twice as long."""
LONGEST_NAME: Final = 253 - len("-collect-N")
USELESS: Final = 1
"""The exit code of a collector that no other try would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """A collector as the API server has it."""

    run: str
    """Of which run of which job it is: `run_of`."""
    number: int
    """Which try it is, from 1."""
    is_over: bool = False
    exit_code: int | None = None
    """None while it has none, or if its container never ran."""
    said: str = ""
    """Its termination message, or what keeps it from starting."""
    ended_at: datetime | None = None
    """Set by the kubelet when it is over."""
    account: Account | None = None
    """As whom it copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectFacts:
    """Everything that the decision depends on."""

    job: SlurmJobObject
    collectors: Sequence[Collector]
    now: datetime
    trouble: str = ""
    """Why the last attempt to make one was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStep:
    """What is to be done, and what is known."""

    collection: Collection
    make: int = 0
    """The number of the collector that is due; 0 for none."""
    remove: tuple[Collector, ...] = ()
    """Those of an earlier run: their names are needed."""
    retry_after: timedelta | None = None


def is_due(job: SlurmJobObject) -> bool:
    """Check whether its results are to be copied now."""
    results = job.status.results
    is_collecting = results is not None and results.phase == "Collecting"
    return is_collecting and job.metadata.deletion_timestamp is None


def decide(facts: CollectFacts) -> CollectStep:
    """Return what is due for a SlurmJob whose results are to be copied."""
    run = run_of(facts.job)
    outdated = tuple(collector for collector in facts.collectors if collector.run != run)
    own = sorted(
        (collector for collector in facts.collectors if collector.run == run),
        key=lambda one: one.number,
    )
    if any(each.exit_code == 0 for each in own):
        return _done(Collected.DONE, "", outdated)
    if faults := unreachable(facts.job):
        return _done(Collected.GIVEN_UP, "; ".join(faults), outdated)
    last = own[-1] if own else None
    if last is not None and last.is_over and last.exit_code == USELESS:
        return _done(Collected.GIVEN_UP, last.said or "the copying failed", outdated)
    if last is not None and last.is_over and last.number >= MOST_TRIES:
        text = f"{MOST_TRIES} tries failed; the last one: {last.said or 'it was killed'}"
        return _done(Collected.GIVEN_UP, text, outdated)
    if _left(facts) <= timedelta(0):
        waits_for = (last.said if last else "") or facts.trouble or "no node took the pod"
        text = f"they were not copied within a day of the job's end: {waits_for}"
        return _done(Collected.GIVEN_UP, text, outdated)
    if last is not None and not last.is_over:
        text = "; ".join(filter(None, [last.said, *map(_told, own[:-1])]))
        return _done(Collected.NOT_YET, text, outdated)
    number = last.number + 1 if last else 1
    text = "; ".join(filter(None, [facts.trouble, *map(_told, own)]))
    pause = _pause(last, facts.now)
    return CollectStep(
        collection=Collection(state=Collected.NOT_YET, text=text),
        make=0 if outdated or pause else number,
        remove=outdated,
        retry_after=pause,
    )


def _told(failed: Collector) -> str:
    return f"try {failed.number} failed: {failed.said or 'it was killed'}"


def _pause(last: Collector | None, now: datetime) -> timedelta | None:
    """Return how long the next try still waits."""
    if last is None or last.ended_at is None:
        return None
    left = BETWEEN * last.number - (now - last.ended_at)
    return left if left > timedelta(0) else None


def _done(state: Collected, text: str, outdated: tuple[Collector, ...]) -> CollectStep:
    return CollectStep(collection=Collection(state=state, text=text), remove=outdated)


def _left(facts: CollectFacts) -> timedelta:
    ended_at = facts.job.status.end_time
    return WITHIN if ended_at is None else WITHIN - (facts.now - ended_at)


def seconds_left(facts: CollectFacts) -> int:
    """Return how long a collector that is made now may take, at least 1."""
    return max(int(_left(facts).total_seconds()), 1)


def run_of(job: SlurmJobObject) -> str:
    """Return which run of which job the results are of: a requeued job keeps its id."""
    return f"{job.status.job_id}-{job.status.restarts}"


def name_of(job: SlurmJobObject, number: int) -> str:
    """Return a collector's name."""
    return f"{job.metadata.name}-collect-{number}"


def source(job: SlurmJobObject, result: JobResult) -> str | None:
    """Return where on the output's volume a result lies; None if it lies elsewhere."""
    if job.spec.output is None:
        return None
    written = job.status.outputs or JobOutputs()
    path = _filled(job, result.source) or written.stdout
    whole = path if path.startswith("/") else f"{written.directory}/{path}"
    return volume.within(whole, job.spec.output.cluster_path)


def target(job: SlurmJobObject, result: JobResult) -> str:
    """Return the folder on its claim in which a result comes to lie; "" is the volume's root."""
    return _filled(job, result.to.path)


def _filled(job: SlurmJobObject, path: str) -> str:
    known = {"%j": str(job.status.job_id or 0), "%x": job.metadata.name, "%u": job.status.user}
    return re.sub("%[jxu]", lambda found: known[found[0]], path)


def unreachable(job: SlurmJobObject) -> list[str]:
    """Return the results that do not lie below `output.clusterPath`, each with what is wrong."""
    output = job.spec.output
    below = output.cluster_path if output else "spec.output"
    directory = job.status.outputs.directory if job.status.outputs else ""
    return [
        f"spec.results[{index}].from: {each.source or 'its standard output'} does not lie below {below}"
        f" (the job's working directory is {directory or 'not known'})"
        for index, each in enumerate(job.spec.results)
        if source(job, each) is None
    ]


def account_of(
    job: SlurmJobObject, jobs: Sequence[BatchJob], collectors: Sequence[Collector]
) -> Account | None:
    """Return whose the job is, by Slurm's word, now or when the status was written; None if it was never known."""
    for each in jobs:
        if each.id == job.status.job_id and each.uid is not None and each.gid is not None:
            return Account(uid=each.uid, gid=each.gid)
    uid, gid = job.status.uid, job.status.gid
    if uid is not None and gid is not None:
        return Account(uid=uid, gid=gid)
    return next(
        (collector.account for collector in collectors if collector.account is not None), None
    )
