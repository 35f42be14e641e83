"""The extender's peers, without servers: they answer what they were told to answer, and write down what they were asked."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from typing_extensions import override

from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.request.build import Defaults
from bridge.domain.request.candidates import Pool
from bridge.domain.request.rules import Policy
from bridge.reconcile.placeholders import Placeholders
from extender.gathering import Gatherer, PolicySource
from extender.nodes import BridgedNodes
from extender.owners import Owners
from extender.submitting import Submitter
from slurmclient import TokenFile
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import Transport
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.objects import Objects
from slurmruntime.model.objects import KubeObject
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId
from slurmruntime.values.oddities import UNHEARD
from tests.make.processes import process
from tests.virtual_time import VirtualClock

PING = {"meta": {"slurm": {"version": {"major": "26", "minor": "5"}}}, "errors": []}


class Slurmrestd(Transport):
    """Answers each submit with the next of its answers."""

    def __init__(self) -> None:
        self.answers: list[Reply | Exception] = []
        self.submitted: list[dict[str, Any]] = []

    @override
    def avoid(self, server: int) -> None:
        """There is no other."""

    @override
    async def exchange(self, request: Request) -> Reply:
        if request.path.endswith("/ping/"):
            return reply(PING)
        assert ("slurm_post_job_submit", "POST") == (request.operation, request.method)
        self.submitted.append(json.loads(request.content or b"{}")["job"])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def reply(body: Mapping[str, Any], status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode())


def accepted(job_id: int) -> Reply:
    return reply({"job_id": job_id, "errors": []})


def rejected(words: str) -> Reply:
    return reply({"errors": [{"error_number": 2045, "error": words}]}, status=500)


class Cluster(Objects):
    """Has the objects it was given; an exception stands for an answer that does not come."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], KubeObject | Exception] = {}
        self.read: list[tuple[str, str]] = []

    @override
    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> KubeObject:
        self.read.append((kind, name))
        found = self.objects.get((kind, name))
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise kube_errors.NotFound("GET", f"/{namespace}/{name}", message="not found")
        return found


class Namespaces(KubeClient):
    """Has one namespace's labels, and nothing else."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self.asked = 0

    @override
    async def request(self, method: str, path: str, **_: object) -> bytes:
        assert method == "GET"
        self.asked += 1
        name = path.rpartition("/")[2]
        metadata = {
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-05-04T12:00:00Z",
            "labels": self.labels,
        }
        return json.dumps({"metadata": metadata}).encode()


class Readings(Placeholders):
    """Shows the jobs that it was given, and notes what is told of writes."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.shown: dict[str, list[SlurmJob]] = defaultdict(list)
        self.writes: list[tuple[str, bool]] = []

    def show(self, identity: Identity, job_id: int = 7) -> SlurmJob:
        job = SlurmJob(id=JobId(job_id), sluid=None, phase=JobPhase.WAITING, identity=identity)
        self.shown[identity.key].append(job)
        return job

    @override
    def now(self) -> datetime:
        return self._clock.now()

    @override
    def of(self, uid: str) -> tuple[SlurmJob, ...]:
        return tuple(self.shown[uid])

    @override
    def submitted(self, job_id: JobId, identity: Identity, *, in_detail: bool = False) -> None:
        """Nothing reads Slurm here."""

    @override
    def wrote(self, uid: str, *, may_still_happen: bool = False) -> None:
        self.writes.append((uid, may_still_happen))


class Nodes(BridgedNodes):
    """Always the same pool."""

    def __init__(self, pool: Pool) -> None:
        self._always = pool

    @override
    async def pool(self) -> Pool:
        return self._always


@dataclass(frozen=True, slots=True)
class Stage:
    """A submitter among its peers."""

    slurmrestd: Slurmrestd
    cluster: Cluster
    namespaces: Namespaces
    readings: Readings
    submitter: Submitter


class Rules(PolicySource):
    """The policy as it is now, and SlurmUser as slurmrestd tells it."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._policy = policy

    @property
    @override
    def current(self) -> Policy:
        return self._policy()

    @override
    async def operators(self) -> frozenset[str]:
        return frozenset({"slurmy", "64999"})


def stage(policy: Callable[[], Policy], defaults: Defaults, pool: Pool) -> Stage:
    clock = VirtualClock()
    slurmrestd, cluster, namespaces, readings = (
        Slurmrestd(),
        Cluster(),
        Namespaces(),
        Readings(clock),
    )
    slurm = SlurmClient(
        slurmrestd, token=TokenFile("nowhere"), connections=1, on_call=lambda *_: None
    )
    gatherer = Gatherer(
        namespaces,
        policy=Rules(policy),
        owners=Owners(cluster, clock),
        bridged=Nodes(pool),
        clock=clock,
    )
    submitter = Submitter(
        slurm,
        placeholders=readings,
        gatherer=gatherer,
        defaults=defaults,
        concurrency=1,
        process=process(clock, Metrics("extender"), UNHEARD),
    )
    return Stage(slurmrestd, cluster, namespaces, readings, submitter)


def words(submitted: Sequence[Mapping[str, Any]], field: str) -> list[object]:
    """One field of each submission."""
    return [each.get(field) for each in submitted]
