"""SlurmJobs, their jobs, and what is known of them, for the tests of the lifecycle."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.domain.observation.view import JobsView
from slurmjobs.lifecycle.situation import JobFacts, JobPolicy
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, JobId, Sluid, WorkloadKey

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
UID = WorkloadKey("5b1c")
POLICY = JobPolicy()


def mark(attempt: int = 1) -> BatchMark:
    return BatchMark(
        cluster=ClusterId("east"), namespace="physics", name="train", key=UID, attempt=attempt
    )


def slurm_job(
    *,
    status: SlurmJobStatus | None = None,
    is_ours: bool = True,
    deleted: bool = False,
    **spec: Any,
) -> SlurmJobObject:
    """A SlurmJob an hour old, with our finalizer unless `is_ours` is false."""
    return SlurmJobObject(
        metadata=ObjectMetadata(
            name="train",
            namespace="physics",
            uid=UID,
            resource_version="1",
            generation=1,
            creation_timestamp=NOW - timedelta(hours=1),
            deletion_timestamp=NOW if deleted else None,
            finalizers=(names.SLURM_JOB_FINALIZER,) if is_ours else (),
        ),
        spec=SlurmJobSpec(script="#!/bin/sh\n", **spec),
        status=status or SlurmJobStatus(),
    )


def batch_job(phase: JobPhase = JobPhase.WAITING, **changes: Any) -> BatchJob:
    plain = BatchJob(
        id=JobId(7),
        sluid=Sluid("s7"),
        phase=phase,
        mark=mark(),
        state=phase.name,
        nodes="n1" if phase in (JobPhase.RUNNING, JobPhase.ENDED) else "",
        submitted_at=NOW - timedelta(minutes=30),
        end=JobEnd.COMPLETED if phase is JobPhase.ENDED else None,
        ended_at=NOW if phase is JobPhase.ENDED else None,
    )
    return replace(plain, **changes)


def facts(job: SlurmJobObject, *jobs: BatchJob, surely: bool = True, **changes: Any) -> JobFacts:
    none = surely and all(each.is_over for each in jobs)
    seen = JobsView(jobs=jobs, fresh=True, surely_none=none)
    return replace(JobFacts(job=job, seen=seen, now=NOW), **changes)


def told(job: SlurmJobObject, status: SlurmJobStatus) -> SlurmJobObject:
    """The SlurmJob once that status was written."""
    return msgspec.structs.replace(job, status=status)
