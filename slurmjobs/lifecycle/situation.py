"""What one decision about a SlurmJob depends on."""

import enum
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bridge.domain.model.batch import BatchJob
from bridge.domain.observation.view import SeenJobs
from slurmjobs.objects.slurmjob import SlurmJobObject


class Archived(enum.Enum):
    """What slurmdbd says of an attempt's job that slurmctld surely does not know."""

    ASKING = "asking"
    """The question is under way, or has failed for now."""
    NOTHING = "nothing"
    """It has no record of such a job."""
    ENDED = "ended"
    UNFINISHED = "unfinished"
    """It has a record, without an end: slurmctld lost the job."""
    UNKNOWN = "unknown"
    """There is no slurmdbd to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """slurmdbd's answer."""

    finding: Archived
    job: BatchJob | None = None
    """How it ended, if it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSubmitted:
    """Why the last submit came to nothing; in memory only, a new leader tries again."""

    reason: str
    """CamelCase: `SubmitRefused` (by Slurm), `PolicyRefused`, `NamespaceNotEnabled`, `ScriptInvalid` …"""
    text: str
    attempts: int
    """How many in a row, at least 1."""
    at: datetime
    is_final: bool = False
    """Nothing that anybody may change makes it work: the SlurmJob has failed."""


class Collected(enum.Enum):
    """How the copying of a job's results stands."""

    NOT_YET = "not yet"
    DONE = "done"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What is known of the copying of the results of the job's last run."""

    state: Collected
    text: str = ""
    """What it waits for, or why it was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """Everything that one decision depends on."""

    job: SlurmJobObject
    seen: SeenJobs[BatchJob]
    """Its jobs in Slurm, of all attempts."""
    now: datetime
    since: datetime | None = None
    """When this process first saw it in this cell of the table; None means now."""
    is_untried: bool = False
    """No submit of this attempt can have been accepted: this process saw its beginning, and Slurm's
    reply to every submit since."""
    archive: Archive | None = None
    """Looked up only where slurmctld surely has no job, and there may have been one."""
    refusal: NotSubmitted | None = None
    collection: Collection = Collection(state=Collected.NOT_YET)
    """Looked at only while the results are being collected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """The settings that decisions depend on."""

    poll_interval: timedelta = timedelta(seconds=1)
    """How soon Slurm is read again: the retry for anything that only waits for that."""
    backoff_first: timedelta = timedelta(seconds=1)
    backoff_cap: timedelta = timedelta(minutes=5)
    remembered: timedelta = timedelta(seconds=45)
    """An ended job is not forgotten sooner: docs/install.md asks for a MinJobAge of at least 60 s."""
    lost_after: timedelta = timedelta(minutes=5)
    """How long a job must be missing before it counts as lost."""
    start_step: timedelta = field(default=timedelta(minutes=5))
    """An expected start that moves by less is not reported again."""
