"""SlurmJobs whose output can be read, for the tests of companions."""

from typing import Any

import msgspec

from slurmjobs.companions.due import Account
from slurmjobs.objects.results import JobEnding, JobResult, JobResults, ResultTarget
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import JobOutput
from slurmjobs.objects.status import JobOutputs, JobPhase, SlurmJobStatus
from tests.slurmjobs.lifecycle.situations import NOW, slurm_job

ALICE = Account(uid=64101, gid=64101)
OUTPUT = JobOutput(claim_name="scratch", cluster_path="/scratch")


def job(phase: JobPhase = "Running", *, asks: bool = True, **status: object) -> SlurmJobObject:
    told = SlurmJobStatus(
        phase=phase,
        job_id=7,
        end_time=NOW if phase in ("Succeeded", "Failed") else None,
        outputs=JobOutputs(stdout="/scratch/alice/7.out", stderr="/scratch/alice/7.out"),
    )
    told = msgspec.structs.replace(told, **status)
    return slurm_job(status=told, output=OUTPUT if asks else None)


def collecting_job(*sources: str, **status: Any) -> SlurmJobObject:
    """One whose job has ended, and whose results are to be copied to `models`."""
    found = job(
        "Running",
        end_time=NOW,
        user="alice",
        outputs=JobOutputs(stdout="/scratch/alice/7.out", directory="/scratch/alice"),
        results=JobResults(phase="Collecting", ended=JobEnding(phase="Succeeded")),
        **status,
    )
    to = ResultTarget(claim_name="models", path="run")
    results = tuple(JobResult(source=source, to=to) for source in sources)
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, results=results))
