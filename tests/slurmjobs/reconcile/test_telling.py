"""The Events of one SlurmJob are few, whatever happens to it."""

from typing import Any

import msgspec

from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmjobs.reconcile.telling import MOST, JobEvents
from tests.slurmjobs.lifecycle.situations import UID, slurm_job

QUEUED = SlurmJobStatus(phase="Pending", job_id=7, reason="Priority")
HELD = SlurmJobStatus(phase="Pending", job_id=7, reason="JobHeldAdmin")
DONE = SlurmJobStatus(phase="Succeeded", job_id=7, reason="Succeeded")


async def test_who_holds_and_releases_for_ever_makes_no_more_than_some_events_and_the_end() -> None:
    sent: list[str] = []

    class Recorder:
        async def record(self, *_: object, reason: str, **__: object) -> None:
            sent.append(reason)

    recorder: Any = Recorder()
    desk, queued = JobEvents(recorder), _job(QUEUED)
    for _ in range(10 * MOST):
        await desk.report(queued, HELD)
    assert sent == ["JobHeldAdmin"] * MOST
    await desk.report(queued, DONE)
    assert "Succeeded" == sent[-1]
    desk.forget(UID)
    await desk.report(queued, HELD)
    assert "JobHeldAdmin" == sent[-1]


def _job(status: SlurmJobStatus) -> SlurmJobObject:
    return msgspec.structs.replace(slurm_job(), status=status)
