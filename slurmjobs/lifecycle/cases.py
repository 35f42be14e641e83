"""A rule's input: a SlurmJob, what Slurm surely knows of its job, and the settings."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.model.batch import BatchJob
from slurmjobs.lifecycle.situation import JobFacts, JobPolicy
from slurmjobs.objects.slurmjob import SlurmJobObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCase:
    """A SlurmJob for which Slurm surely has no job."""

    facts: JobFacts
    policy: JobPolicy
    attempt: int
    """Which of its jobs is the present one, from 1."""

    @property
    def object(self) -> SlurmJobObject:
        """The SlurmJob in question."""
        return self.facts.job

    @property
    def dwelt(self) -> timedelta:
        """How long it has been seen in this cell."""
        return self.facts.now - (self.facts.since or self.facts.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCase(ObjectCase):
    """A SlurmJob and the job of its present attempt."""

    job: BatchJob

    @property
    def deadline_at(self) -> datetime | None:
        """When its `activeDeadlineSeconds` pass; None if it has none, or Slurm has not said when it was submitted."""
        seconds, since = self.object.spec.active_deadline_seconds, self.job.submitted_at
        if seconds is None or since is None:
            return None
        try:
            return since + timedelta(seconds=seconds)
        except OverflowError:
            return None
