"""Which SlurmJobs the loop reconciles after a change; what it then decides is tested with the lifecycle."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from bridge.domain.model.batch import BatchJob
from bridge.domain.model.jobs import JobPhase
from bridge.domain.observation.view import JobsView
from bridge.kube.decode import PODS
from slurmjobs.lifecycle.actions import JobDecision
from slurmjobs.lifecycle.situation import Collection, CopyState
from slurmjobs.objects.slurmjob import OURS, JobResource, SlurmJobObject
from slurmjobs.objects.spec import JobDependency
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.loop import JobsInSlurm, JobSources, SlurmJobLoop
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import WorkloadKey
from slurmruntime.values.oddities import UNHEARD
from tests import virtual_time
from tests.make.processes import process
from tests.slurmjobs.lifecycle.situations import NOW, POLICY, UID, batch_job, slurm_job
from tests.virtual_time import VirtualClock

LATER = WorkloadKey("6c2d")


class Peers:
    """Everything that the loop asks: Slurm with some jobs, and who would carry decisions out."""

    def __init__(self) -> None:
        self.looked: list[str] = []
        self.retried: list[WorkloadKey] = []
        self.orphans: list[int] = []
        self.forgotten: list[WorkloadKey] = []
        self.jobs: dict[WorkloadKey, tuple[BatchJob, ...]] = {}

    async def run(self, stop: asyncio.Event) -> None:
        await stop.wait()

    def now(self) -> object:
        return NOW

    def seen(self, job: SlurmJobObject) -> JobsView[BatchJob]:
        return JobsView(jobs=self.of(WorkloadKey(job.metadata.uid)), fresh=True)

    def of(self, key: WorkloadKey) -> tuple[BatchJob, ...]:
        return self.jobs.get(key, ())

    def meet(self, *_: object) -> None:
        """Nothing is expected."""

    def is_awaited(self, _key: WorkloadKey) -> bool:
        return False

    def is_ours(self, _key: WorkloadKey) -> bool:
        return False

    def refusal(self, _key: WorkloadKey) -> None:
        return None

    def is_untried(self, _key: WorkloadKey, _attempt: int) -> bool:
        return False

    def retry(self, key: WorkloadKey) -> None:
        self.retried.append(key)

    def forget(self, key: WorkloadKey) -> None:
        self.forgotten.append(key)

    def mark(self, *_: object) -> None:
        return None

    def finding(self, *_: object) -> None:
        return None

    async def carry_out(self, job: SlurmJobObject, _decision: JobDecision) -> None:
        self.looked.append(job.metadata.name)

    async def cancel_orphan(self, job: BatchJob, where: JobResource, key: WorkloadKey) -> None:
        assert OURS is where
        self.orphans.append(job.id)
        self.jobs.pop(key)


def changed(job: SlurmJobObject, version: str, **meta: Any) -> SlurmJobObject:
    metadata = msgspec.structs.replace(job.metadata, resource_version=version, **meta)
    return msgspec.structs.replace(job, metadata=metadata)


def lived(*jobs: SlurmJobObject, then: Callable[[Cache[SlurmJobObject], Peers], None]) -> Peers:
    """What came of a change."""
    peers = Peers()

    async def main(clock: VirtualClock) -> None:
        objects = JobCaches((OURS,), UNHEARD)
        ours = objects.of(OURS)
        for job in jobs:
            ours.put_listed(job)
        ours.listed()
        shared = process(clock, Metrics("test"), UNHEARD)
        peer = cast(Any, peers)
        loop = SlurmJobLoop(
            JobSources(objects=objects, pods=Cache(PODS), queue=WorkQueue(rng=shared.rng)),
            JobsInSlurm(batch_jobs=peer, archives=peer, submitter=peer),
            peer,
            collection=lambda _: Collection(state=CopyState.NOT_YET),
            policy=POLICY,
            process=shared,
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(stop, workers=1))
            await clock.sleep(0.3)  # they are due again after a second
            peers.looked.clear()
            peers.retried.clear()
            then(ours, peers)
            await clock.sleep(0.3)  # they are due again after a second
            stop.set()

    virtual_time.run(main)
    return peers


def test_a_change_wakes_those_that_wait_for_it_and_lets_them_submit_again() -> None:
    later = slurm_job(depends_on=(JobDependency(slurm_job="train"),))
    later = changed(later, "1", name="later", uid=LATER)

    def then(ours: Cache[SlurmJobObject], _peers: Peers) -> None:
        ours.put(changed(slurm_job(), "2"))

    found = lived(slurm_job(), later, then=then)

    assert ["later", "train"] == sorted(found.looked)
    assert [LATER] == found.retried


def test_an_edited_one_may_be_submitted_again() -> None:
    def then(ours: Cache[SlurmJobObject], _peers: Peers) -> None:
        ours.put(changed(slurm_job(), "2", generation=2))

    found = lived(slurm_job(), then=then)

    assert (["train"], [UID]) == (found.looked, found.retried)


def test_the_job_of_one_that_is_gone_is_cancelled() -> None:
    def then(ours: Cache[SlurmJobObject], peers: Peers) -> None:
        peers.jobs[UID] = (batch_job(JobPhase.RUNNING),)
        ours.remove(UID)

    found = lived(slurm_job(), then=then)

    assert [7] == found.orphans
    assert UID in found.forgotten
