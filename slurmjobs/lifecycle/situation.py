"""The facts and settings that a decision about a SlurmJob depends on."""

import enum
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bridge.domain.model.batch import BatchJob
from bridge.domain.observation.view import JobsView
from slurmjobs.objects.slurmjob import SlurmJobObject


class ArchiveFinding(enum.Enum):
    """slurmdbd's answer about an attempt's job that slurmctld certainly does not know."""

    ASKING = "asking"
    """The query is under way, or has failed for now."""
    NOTHING = "nothing"
    """There is no record of such a job."""
    ENDED = "ended"
    UNFINISHED = "unfinished"
    """There is a record without an end: slurmctld lost the job."""
    UNKNOWN = "unknown"
    """There is no slurmdbd to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """slurmdbd's answer, with the job if it ended."""

    finding: ArchiveFinding
    job: BatchJob | None = None
    """Only if it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFailure:
    """Why the last submit failed; kept only in memory, so a new leader tries again."""

    reason: str
    """CamelCase: `SubmitRefused` (by Slurm), `PolicyRefused`, `NamespaceNotEnabled`, `ScriptInvalid` …"""
    text: str
    attempts: int
    at: datetime
    is_final: bool = False
    """No change that is possible would make it work: the SlurmJob has failed."""


class CopyState(enum.Enum):
    """The state of copying a job's results."""

    NOT_YET = "not yet"
    DONE = "done"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The state of copying the results of the job's last run."""

    state: CopyState
    text: str = ""
    """Why it waits, or why it was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """Everything that one decision depends on."""

    job: SlurmJobObject
    seen: JobsView[BatchJob]
    now: datetime
    since: datetime | None = None
    """When this process first saw it in this cell of the table; None means now."""
    is_untried: bool = False
    """No submit of this attempt can have been accepted: this process saw the attempt begin, and
    Slurm's reply to every submit since."""
    archive: Archive | None = None
    """Looked up only if slurmctld certainly has no job, and there may have been one."""
    refusal: SubmissionFailure | None = None
    collection: Collection = Collection(state=CopyState.NOT_YET)
    """Used only while results are being collected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """The settings that decisions depend on."""

    poll_interval: timedelta = timedelta(seconds=1)
    """Time between readings of Slurm, and the retry for anything that only waits for one."""
    backoff_first: timedelta = timedelta(seconds=1)
    backoff_cap: timedelta = timedelta(minutes=5)
    min_job_age: timedelta = timedelta(seconds=45)
    """Slurm knows an ended job at least this long: docs/install.md requires a MinJobAge of at least 60 s."""
    lost_after: timedelta = timedelta(minutes=5)
    """How long a job must be missing before it counts as lost."""
    start_step: timedelta = field(default=timedelta(minutes=5))
    """An expected start that moves by less is not reported again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCase:
    """A SlurmJob, for rules that do not look at its job."""

    facts: JobFacts
    policy: JobPolicy
    attempt: int

    @property
    def object(self) -> SlurmJobObject:
        """The SlurmJob in question."""
        return self.facts.job

    @property
    def time_in_cell(self) -> timedelta:
        """How long this process has seen it in this cell."""
        return self.facts.now - (self.facts.since or self.facts.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCase(ObjectCase):
    """A SlurmJob and the job of its present attempt."""

    job: BatchJob

    @property
    def deadline_at(self) -> datetime | None:
        """When its `activeDeadlineSeconds` pass; None if it has none, or its submit time is not known yet."""
        seconds, since = self.object.spec.active_deadline_seconds, self.job.submitted_at
        if seconds is None or since is None:
            return None
        try:
            return since + timedelta(seconds=seconds)
        except OverflowError:
            return None
