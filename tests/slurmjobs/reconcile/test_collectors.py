"""The pods that copy results are made, made again and removed, whatever the API server answers."""

import asyncio
import json
import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from typing_extensions import override

from bridge.reconcile.program import Program
from bridge.settings.configuration import Installation
from slurmjobs.lifecycle.situation import CopyState
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.companions.collectors import ResultCollectors
from slurmjobs.reconcile.companions.pods import PODS, CompanionPod, CompanionWatch
from slurmruntime.kube.errors import Conflict, Forbidden, KubeError, NotFound, Unavailable
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey
from slurmruntime.values.oddities import UNHEARD
from tests.make.processes import process
from tests.slurmjobs.companions.outputs import ALICE, collecting_job
from tests.slurmjobs.lifecycle.situations import NOW, UID

KEY = WorkloadKey(UID)


class _Kube:
    """Keeps what it is asked, and answers with what it is given."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: list[KubeError] = []

    def acting_as(self, _user: str) -> "_Kube":
        return self

    async def request(self, verb: str, path: str, *, body: dict[str, Any]) -> bytes:
        name = body["metadata"]["name"] if verb == "POST" else path.rpartition("/")[2]
        self.asked.append((verb, name))
        if self.answers:
            raise self.answers.pop()
        return b"{}"


class _Watch(CompanionWatch):
    """Has the bench's pods, and has listed them."""

    def __init__(self, bench: "_Bench", program: Program) -> None:
        super().__init__(program)
        self._bench = bench
        self.pods.synced.set()

    @override
    def collectors(self, _key: WorkloadKey) -> list[CompanionPod]:
        return self._bench.pods


class _Bench:
    def __init__(self) -> None:
        self.kube = _Kube()
        self.job: SlurmJobObject | None = collecting_job("a", uid=ALICE.uid, gid=ALICE.gid)
        self.pods: list[CompanionPod] = []
        self.told: WorkQueue[WorkloadKey] = WorkQueue(rng=random.Random(1))  # noqa: S311  # no secret
        slurm_jobs = SimpleNamespace(companion_image="image")
        program = SimpleNamespace(
            kube=self.kube,
            set_aside=UNHEARD,
            process=process(SystemClock(), Metrics("test")),
            settings=SimpleNamespace(slurm_jobs=slurm_jobs),
            installation=Installation(companion_account="companions"),
        )
        self.collectors = ResultCollectors(
            cast(Program, program),
            _Watch(self, cast(Program, program)),
            objects=cast(JobCaches, SimpleNamespace(get=lambda _key: self.job)),
            batch_jobs=cast(
                BatchJobs,
                SimpleNamespace(now=lambda: NOW + timedelta(minutes=5), of=lambda _key: ()),
            ),
            job_queue=self.told,
        )

    def look(self) -> timedelta | None:
        return asyncio.run(self.collectors.reconcile(KEY))

    def said(self) -> tuple[CopyState, str]:
        assert self.job is not None
        found = self.collectors.collection(self.job)
        return found.state, found.text


@pytest.fixture
def bench() -> _Bench:
    return _Bench()


def pod(number: int, *, run: str = "7-0", code: int | None = None, said: str = "") -> CompanionPod:
    terminated = {"exitCode": code, "message": said, "finishedAt": NOW.isoformat()}
    state = {} if code is None else {"terminated": terminated}
    body = {
        "metadata": {
            "name": f"train-collect-{number}",
            "namespace": "physics",
            "uid": f"u{number}",
            "labels": {names.COMPANION_LABEL: "collect"},
            "annotations": {names.FOLLOWS_ANNOTATION: run},
        },
        "status": {
            "phase": "Running" if code is None else "Failed" if code else "Succeeded",
            "containerStatuses": [{"state": state}],
        },
    }
    return PODS.read(json.dumps(body).encode())


def test_one_is_made_and_then_waited_for(bench: _Bench) -> None:
    assert None is bench.look()
    bench.pods = [pod(1)]
    assert None is bench.look()

    assert [("POST", "train-collect-1")] == bench.kube.asked


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Forbidden("pods", "exceeded quota"), "exceeded quota"),
        (Conflict("pods", "exists"), "pod train-collect-1 already exists"),
    ],
)
def test_a_refusal_is_told_and_tried_again(bench: _Bench, answer: KubeError, text: str) -> None:
    bench.kube.answers = [answer]

    assert timedelta(seconds=30) == bench.look()

    state, said = bench.said()
    assert CopyState.NOT_YET is state
    assert text in said
    assert None is bench.look()
    assert (CopyState.NOT_YET, "") == bench.said()


def test_a_lost_reply_makes_no_second_one(bench: _Bench) -> None:
    bench.kube.answers = [Unavailable("pods", "reset")]
    with pytest.raises(Unavailable):
        bench.look()
    bench.pods = [pod(1)]
    bench.look()

    assert [("POST", "train-collect-1")] == bench.kube.asked


def test_a_failed_try_is_repeated_and_a_good_one_ends_it(bench: _Bench) -> None:
    bench.pods = [pod(1, code=75, said="full")]
    bench.look()
    assert [("POST", "train-collect-2")] == bench.kube.asked
    bench.pods.append(pod(2, code=0))
    bench.look()

    assert 1 == len(bench.kube.asked)
    assert (CopyState.DONE, "") == bench.said()


def test_those_of_an_earlier_run_are_removed_before_one_is_made(bench: _Bench) -> None:
    bench.pods = [pod(1, run="7-9", code=0)]
    bench.look()
    assert [("DELETE", "train-collect-1")] == bench.kube.asked
    bench.kube.answers = [NotFound("pods", "gone")]
    bench.look()
    bench.pods = []
    bench.look()

    assert ("POST", "train-collect-1") == bench.kube.asked[-1]


def test_nobody_copies_as_root_or_as_a_stranger(bench: _Bench) -> None:
    for status in ({}, {"uid": 0, "gid": 0}):
        bench.job = collecting_job("a", **status)
        assert timedelta(seconds=30) == bench.look()
        assert "the job's uid is unknown" in bench.said()[1]
    assert [] == bench.kube.asked


def test_one_that_is_gone_or_deleted_needs_none(bench: _Bench) -> None:
    assert bench.job is not None
    meta = msgspec.structs.replace(bench.job.metadata, deletion_timestamp=NOW)
    bench.job = msgspec.structs.replace(bench.job, metadata=meta)
    assert None is bench.look()
    bench.job = None
    assert None is bench.look()
    assert [] == bench.kube.asked
