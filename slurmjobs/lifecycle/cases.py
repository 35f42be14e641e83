"""The input of a rule: a SlurmJob, what Slurm certainly knows about its job, and the settings."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.model.batch import BatchJob
from slurmjobs.lifecycle.situation import JobFacts, JobPolicy
from slurmjobs.objects.slurmjob import SlurmJobObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCase:
    """A SlurmJob, for rules that do not look at its job."""

    facts: JobFacts
    policy: JobPolicy
    attempt: int
    """The number of the present attempt, from 1."""

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
